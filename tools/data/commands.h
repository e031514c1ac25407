// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "engine/experiment/config.h"

// The commands of tools:data, each of which prints what it has done or found. All throw the errors of what they read
// and write.

namespace phalanx {

/// Sizes, classes, mean and standard deviation of some samples of each split, drawn by `seed`, as a model sees them.
void print_statistics(const Splits& splits, std::int64_t samples, std::int64_t seed);

/// Writes a page with some samples of the training split, drawn by `seed`: what a model sees, with its labels. Of
/// images alone.
void write_contact_sheet(const Splits& splits, std::int64_t samples, std::int64_t seed, const std::string& file);

/// Packs the images that find_images() finds below FROM into tar archives TO/SPLIT-00000.tar and on, for the splits
/// train, val and test, with `per_shard` images each, in an order that is drawn by `seed`. Writes the names of the
/// classes to TO/classes.txt.
void write_shards(const std::string& from, const std::string& to, std::int64_t per_shard, std::int64_t seed);

/// Writes the tokens of a text to TO/train.bin, and those of its last part to TO/val.bin: 16 bits each, or 32 where the
/// tokenizer has more than 65,536.
void write_tokens(const std::string& text, const std::string& tokenizer, const std::string& to, double train_share);

/// How many samples a second the loader of a config gives to a rank that does nothing else, over at least `samples` of
/// them: what training cannot be faster than.
void print_speed(const ExperimentConfig& config, std::int64_t samples);

}  // namespace phalanx
