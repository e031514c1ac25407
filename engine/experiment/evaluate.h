// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "datasets/dataset.h"
#include "engine/experiment/config.h"
#include "engine/experiment/unreadable_samples.h"
#include "engine/meters/readings.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Inputs of an evaluation besides the config of the run.
struct EvaluationContext {
  CommunicatorPtr world{};
  c10::Device device{c10::kCPU};  // where this rank computes
  Splits splits{};                // the same data on all ranks
  std::string weights;            // safetensors file with all parameters and buffers of the config's model
  std::string split{"test"};      // or "validation"
  std::string predictions{};      // file for the predictions, see Predictions; empty: none
  std::function<bool()> stop_asked = [] { return false; };  // polled once a batch
};

struct EvaluationResult {
  Readings readings{};  // the same on all ranks
  std::int64_t samples = 0;
  std::optional<Unreadable> unreadable{};  // samples skipped by loader.on_error: skip; same on all ranks
};

/// Measures saved weights on a split in the same way as a run with this config. The result does not depend on the
/// number of ranks, except for rounding. Returns nullopt on all ranks if one of them was asked to stop.
///
/// Collective. Throws DataError if the weights do not fit the model, ConfigError if the split does not exist, and Error
/// if the loss is not finite, unless watch.nan_guard is off.
std::optional<EvaluationResult> evaluate_weights(const ExperimentConfig& config, const EvaluationContext& context);

}  // namespace phalanx
