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

/// Inputs of an evaluation, apart from the config of the run.
struct EvaluationContext {
  CommunicatorPtr world{};
  c10::Device device{c10::kCPU};  // this rank's, where it computes
  Splits splits{};                // the same data on all ranks
  std::string weights;            // safetensors file with all parameters and buffers of the config's model
  std::string split{"test"};      // or "validation"
  std::string predictions{};      // file to write them to, see Predictions; empty: none
  std::function<bool()> stop_asked = [] { return false; };  // polled once a batch
};

struct EvaluationResult {
  Readings readings{};  // the same on all ranks
  std::int64_t samples = 0;
  std::optional<Unreadable> unreadable{};  // what loader.on_error: skip has skipped; the same on all ranks
};

/// Measures saved weights on a split, as a run with this config would: on any number of ranks, with the same result but
/// for rounding.
/// Collective. Throws DataError where the weights are not those of the model, ConfigError where there is no such split,
/// and Error where the loss is not finite, unless watch.nan_guard is off. Nothing, on all ranks, where one of them was
/// asked to stop.
std::optional<EvaluationResult> evaluate_weights(const ExperimentConfig& config, const EvaluationContext& context);

}  // namespace phalanx
