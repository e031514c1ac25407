// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "engine/experiment/unreadable_samples.h"
#include "framework/base/metrics.h"

namespace phalanx {

/// An evaluation of saved weights.
struct EvaluationOptions {
  std::string weights;        // safetensors file with all parameters and buffers of the config's model
  std::string split{"test"};  // or "validation"
  std::string predictions{};  // file for the predictions, see Predictions; empty: none
};

struct EvaluationResult {
  Metrics metrics{};  // the same on all ranks
  std::int64_t samples = 0;
  std::optional<Unreadable> unreadable{};  // samples skipped by loader.on_error: skip; same on all ranks
};

/// Measures saved weights on a split in the same way as a run with this config. The result does not depend on the
/// number of ranks, except for rounding. Returns nullopt on all ranks if one of them was asked to stop, which it polls
/// once a batch (ExperimentContext::stop_asked).
///
/// Collective. Throws DataError if the weights do not fit the model, ConfigError if the split does not exist, and Error
/// if the loss is not finite, unless watch.nan_guard is off.
std::optional<EvaluationResult> evaluate_weights(const ExperimentConfig& config, const ExperimentContext& context,
                                                 const EvaluationOptions& options);

}  // namespace phalanx
