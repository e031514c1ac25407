// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "datasets/dataset.h"
#include "engine/config/experiment_config.h"

// The commands of tools:data. Each prints its result, and passes on the errors of reading and writing.

namespace phalanx {

/// Prints sizes, classes, means and standard deviations of some samples of each split, drawn by `seed`, after the
/// transforms that a model's input goes through.
void print_statistics(const Splits& splits, std::int64_t samples, std::int64_t seed);

/// Writes a page with some samples of the training split, drawn by `seed`, as a model receives them, with their labels.
/// Supports images only.
void write_contact_sheet(const Splits& splits, std::int64_t samples, std::int64_t seed, const std::string& file);

/// Packs the images that find_images() finds below FROM into tar archives TO/SPLIT-00000.tar, TO/SPLIT-00001.tar, ...
/// for the splits train, val and test. Each archive has `per_shard` images, in an order drawn by `seed`. Writes the
/// names of the classes to TO/classes.txt.
void write_shards(const std::string& from, const std::string& to, std::int64_t per_shard, std::int64_t seed);

/// Writes the tokens of the first part of a text to TO/train.bin and of the rest to TO/val.bin, as 16-bit numbers, or
/// as 32-bit numbers if the tokenizer has more than 65,536 tokens.
void write_tokens(const std::string& text, const std::string& tokenizer, const std::string& to, double train_share);

/// Prints how many samples per second the loader of a config provides to a rank that does nothing else, measured over
/// at least `samples` samples. Training cannot be faster than this.
void print_speed(const ExperimentConfig& config, std::int64_t samples);

}  // namespace phalanx
