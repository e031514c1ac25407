// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/simulate/scenario.h"

namespace phalanx::simulate {

/// A predicted training step. The components add up to `seconds`.
struct Step {
  ScenarioMesh mesh{};  // with data filled in
  double seconds = 0;
  double compute = 0;    // all micro-batches of a stage
  double layers = 0;     // communication inside layers: tensor, expert and context axes, and transfers of the pipe
  double bubble = 0;     // pipeline bubble
  double gradients = 0;  // communication of gradients and parameters that is not hidden
  double samples = 0;    // samples per step
  double memory = 0;     // bytes per rank
  bool fits = true;      // true if `memory` is within cluster.memory

  double samples_per_second() const { return samples / seconds; }
};

/// Predicts one step.
///
///   compute    samples of a replica, sharded along tensor, pipe and context; times 4 / 3 with recompute; times ranks
///              per core if ranks share cores
///   pipe       (pipe - 1) / micro-batches of compute and the layers' communication (arXiv:2104.04473, section 2.2)
///   tensor     4 all-reduces of the activations per layer, 6 with recompute (arXiv:1909.08053)
///   expert     4 all-to-alls per layer, of experts_per_token times the activations (arXiv:2006.16668)
///   context    2 all-gathers of keys and values per layer in forward, and as much in backward
///   gradients  an all-reduce among data, expert and context, or with ZeRO a reduce-scatter and an all-gather, and with
///              stage 3 another all-gather (arXiv:1910.02054, section 7). With overlap, the backward of the last
///              micro-batch hides communication (2 / 3 of its compute), or with stage 3 all compute; the last bucket
///              is never hidden (arXiv:2006.15704, section 3.2.3)
///
/// Throws ConfigError, with the key, for a mesh that does not fit ranks, model or batch.
Step simulate(const Scenario& scenario);

/// Returns the throughput relative to the ideal: the throughput of one rank alone, with as many samples per replica,
/// times the ranks.
double scaling_efficiency(const Scenario& scenario);

/// Returns all meshes that fit into memory, best throughput first. Throws ConfigError if none fits, with the memory
/// that the smallest needs.
std::vector<Step> search(const Scenario& scenario);

/// The throughput at one number of hosts; scaling() returns it for 1, 2, 4, ... hosts, up to the scenario's.
struct ScalingPoint {
  std::int64_t ranks = 0;
  double samples_per_second = 0;
  double ideal = 0;  // throughput of one host times the number of hosts
};
std::vector<ScalingPoint> scaling(Scenario scenario);

}  // namespace phalanx::simulate
