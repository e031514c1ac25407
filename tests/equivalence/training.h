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

/// 40 steps, six epochs, with momentum and weight decay on shares that nothing divides: 77 samples do not divide by 2,
/// 3 or 4, nor 500 by 77. `changes` are overrides of it: "strategy=sharded".
ExperimentConfig training_config(const std::vector<std::string>& changes);

struct Trained {
  at::Tensor weights;  // all parameters, one after the other
  Readings test;
  std::string folder;  // of the run
  std::int64_t bucket_bytes = 0;
  Figures figures{};
};

/// Trains on all ranks of `world`, with one thread each. `run`: a name that no other run of the test has, or that of
/// the one that it goes on from, if the config resumes. `stop_asked`: asked after each step.
Trained train(
    const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
    std::function<bool()> stop_asked = [] { return false; });

/// The same with what else `prepare` puts into the context of the run.
Trained train(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
              const std::function<void(ExperimentContext&)>& prepare);

/// Trains on rank 0 alone and broadcasts its weights and readings. `like`: a result of the same model, for their shapes
/// and names. Collective.
Trained train_on_first(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run,
                       const Trained& like);

/// |a - b| / |b|
double relative_difference(const at::Tensor& a, const at::Tensor& b);

}  // namespace phalanx::testing
