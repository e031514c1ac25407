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
  std::string model;           // YAML of the config's section, with the defaults of the peers
  std::string own_model;       // the same with Phalanx's own defaults
  SampleSpec sample;           // shapes of drawn samples
  std::int64_t samples = 0;    // number of samples in memory
  std::int64_t batch = 0;      // per rank
  double learning_rate = 0.1;  // SGD with momentum 0.9
  bool pictures = false;       // a convolutional model
  bool divisible = false;      // true if peers can divide the model among ranks
  bool in_torch = true;        // ddp_models.py has it
  bool in_jax = false;         // jax_models.py has it
  bool in_cpp = false;         // make_network() has it (cpp/network.h)
  bool of_zoo = false;         // defined in zoo.h; each rank draws the samples (random_samples.h)
};

/// Returns all workloads; the workloads of the zoo (zoo.h) come last.
const std::vector<Workload>& workloads();

/// Throws std::out_of_range if there is no workload of this name.
const Workload& find_workload(std::string_view name);

/// Returns a workload "zoo_MODEL" for each registered model, except models that read programs from files. They are
/// small (few channels, blocks and tokens), have no dropout, and are fed with samples of the shapes that they accept.
std::vector<Workload> zoo_workloads();

/// Returns the operations (framework/observe/flop_counter.h) of a training step on `rows` samples: forward, loss and
/// backward. Absent for a task that trains in turns (Task::turns()), whose steps differ. Throws ConfigError if model
/// and samples do not fit.
std::optional<double> flops_of_step(const Workload& workload, const SampleSpec& sample, std::int64_t rows);

}  // namespace phalanx::bench_train
