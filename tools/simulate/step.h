// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/simulate/scenario.h"

namespace phalanx::simulate {

/// A training step as the model predicts it. Seconds add up to `seconds`.
struct Step {
  ScenarioMesh mesh{};  // with data filled in
  double seconds = 0;
  double compute = 0;    // of all micro-batches of a stage
  double layers = 0;     // communication inside layers: tensor, expert and context axes, and transfers of the pipe
  double bubble = 0;     // waiting of the pipe
  double gradients = 0;  // communication of gradients and parameters that nothing hides
  double samples = 0;    // of a step
  double memory = 0;     // bytes of a rank
  bool fits = true;      // into cluster.memory

  double samples_per_second() const { return samples / seconds; }
};

/// One step.
///
///   compute    samples of a replica, divided along tensor, pipe and context; times recompute's 4 / 3; times ranks per
///              core where ranks share cores
///   pipe       (pipe - 1) / micro-batches of that and the layers' communication (arXiv:2104.04473, section 2.2)
///   tensor     4 all-reduces of the activations a layer, 6 with recompute (arXiv:1909.08053)
///   expert     4 all-to-alls a layer, of experts_per_token times the activations (arXiv:2006.16668)
///   context    2 all-gathers of keys and values a layer forward, and as much backward
///   gradients  an all-reduce among data, expert and context, or with ZeRO a reduce-scatter and an all-gather, with
///              stage 3 another all-gather (arXiv:1910.02054, section 7). What is hidden: with overlap, what fits under
///              the backward of the last micro-batch (2 / 3 of it), with stage 3 under all compute; never the last
///              bucket (arXiv:2006.15704, section 3.2.3)
///
/// Throws ConfigError, with the key, for a mesh that does not fit ranks, model or batch.
Step simulate(const Scenario& scenario);

/// That of one rank alone with as many samples for each replica times the ranks: how much of ideal is reached.
double scaling_efficiency(const Scenario& scenario);

/// All meshes that fit into memory, best throughput first. Throws ConfigError where none does, with what the smallest
/// needs.
std::vector<Step> search(const Scenario& scenario);

/// A point of each number of hosts 1, 2, 4, ... up to the scenario's.
struct ScalingPoint {
  std::int64_t ranks = 0;
  double samples_per_second = 0;
  double ideal = 0;  // of one host, times hosts
};
std::vector<ScalingPoint> scaling(Scenario scenario);

}  // namespace phalanx::simulate
