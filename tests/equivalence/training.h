// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/experiment/experiment.h"
#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// Returns a config for 40 steps, six epochs, with momentum and weight decay and with uneven shares: neither 2, 3 nor 4
/// divides 77 samples, and 77 does not divide 500. `changes` are overrides of it: "strategy=sharded".
ExperimentConfig training_config(const std::vector<std::string>& changes);

struct Trained {
  at::Tensor weights;  // all parameters, one after the other
  Metrics test;
  std::string folder;  // folder of the run
  std::int64_t bucket_bytes = 0;
  Metrics metrics{};
  Metrics update{};  // of the last update
};

/// Trains on all ranks of `world`, with one thread each. `run`: a name that no other run of the test has, or the name
/// of the run to continue if the config resumes. `stop_asked`: called after each step.
Trained train(
    const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
    std::function<bool()> stop_asked = [] { return false; });

/// The same, with additional entries that `prepare` makes in the context of the run.
Trained train(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
              const std::function<void(ExperimentContext&)>& prepare);

/// Trains on rank 0 only and broadcasts its weights and metrics. `like`: a result of the same model, which provides
/// their shapes and names. Collective.
Trained train_on_first(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
                       const Trained& like);

/// Returns |a - b| / |b|.
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace phalanx::testing
