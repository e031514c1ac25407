// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/sample_spec.h"

namespace phalanx::bench_train {

/// A model to train and its batches, the same for all systems: peers know the models by the same names. Only Phalanx
/// trains models of the zoo.
struct Workload {
  std::string name;
  std::string model;           // YAML of the config's section, with what the peers' default has
  std::string own_model;       // the same with Phalanx's own defaults
  SampleSpec sample;           // of drawn data
  std::int64_t samples = 0;    // in memory
  std::int64_t batch = 0;      // per rank
  double learning_rate = 0.1;  // of SGD with momentum 0.9
  bool pictures = false;       // a model of convolutions
  bool divisible = false;      // one that the peers can divide among ranks
  bool in_torch = true;        // ddp_models.py has it
  bool in_jax = false;         // jax_models.py has it
  bool of_zoo = false;         // zoo.h; samples are drawn in each rank (random_samples.h)
};

/// Returns all workloads; those of the zoo (zoo.h) come last.
const std::vector<Workload>& workloads();

/// Throws std::out_of_range.
const Workload& find_workload(std::string_view name);

/// Returns a workload "zoo_MODEL" for each registered model, but those that read programs from files: small (few
/// channels, blocks and tokens) and without dropout, fed with samples of the shapes that it takes.
std::vector<Workload> zoo_workloads();

/// Returns the operations (engine/watch/operation_count.h) of a step of training on `rows` samples: forward, loss and
/// backward. None for a task that trains in
/// turns (Task::turns()), whose steps differ. Throws ConfigError where model and samples do not fit.
std::optional<double> operations_of_step(const Workload& workload, const SampleSpec& sample, std::int64_t rows);

}  // namespace phalanx::bench_train
