// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "datasets/sampler.h"
#include "engine/config/experiment_config.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The purpose of a split. Training reads it in the order of loader.sampler; testing reads every sample once.
enum class SplitUse { kTraining, kTesting };

/// Returns which samples of a split each rank takes, as the config asks. Arguments and errors: see make_split_loader().
BatchSampler::Options split_options(const Dataset& split, std::int64_t global_batch, const ExperimentConfig& config,
                                    SplitUse use, const Communicator& group,
                                    std::shared_ptr<const std::vector<std::int64_t>> shares = nullptr,
                                    std::int64_t skipped = 0);

/// Returns a loader of a split, as the config asks. `group`: the ranks that share its batches; `shares`: see
/// SampleShares; `skipped`: see BatchSampler. The order of training does not depend on `global_batch`, which may differ
/// from train.global_batch_size (faults.batch). Throws ConfigError if the dataset cannot be ordered by loader.sampler.
std::unique_ptr<Loader> make_split_loader(const std::shared_ptr<const Dataset>& split, std::int64_t global_batch,
                                          const ExperimentConfig& config, SplitUse use, const Communicator& group,
                                          std::shared_ptr<const std::vector<std::int64_t>> shares = nullptr,
                                          std::int64_t skipped = 0);

/// Returns the splits of a run. If evaluate.validation is above 0, a part of the training split becomes the validation
/// split.
Splits with_held_out(const Splits& splits, const ExperimentConfig& config);

}  // namespace phalanx
