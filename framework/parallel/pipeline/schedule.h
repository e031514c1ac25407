// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx::pipeline {

/// What a rank does with one micro-batch on one of its stages.
struct Action {
  enum class Kind {
    kForward,
    kBackward,        // gradients of the stage's input and of its parameters
    kInputGradient,   // the first of these alone,
    kWeightGradient,  // and, later, the others
  };
  Kind kind = Kind::kForward;
  int stage = 0, micro_batch = 0;

  bool operator==(const Action&) const = default;
};

/// Who does what in which order in a step of a pipeline. A forward needs that of the stage before, a backward that of
/// the stage behind; every rank does its actions one after the other.
struct Schedule {
  std::string name;
  int ranks = 1, stages = 1, micro_batches = 1;
  std::vector<std::vector<Action>> actions;  // by rank

  /// The rank that computes a micro-batch on a stage.
  int rank_of(int stage, int micro_batch) const;

  /// Of which a rank has the parameters, ascending.
  std::vector<int> stages_of(int rank) const;
};

/// How long actions on any stage take, in any unit. A backward takes as long as the two gradients.
struct Costs {
  double forward = 1, input_gradient = 1, weight_gradient = 1;
  double transfer = 0;  // of what a stage gives, to another rank
};

struct ScheduleOptions {
  int ranks = 1, stages_per_rank = 1, micro_batches = 1;
  Costs costs{};         // zero_bubble: for which it is searched
  int memory_limit = 0;  // zero_bubble: micro-batches whose activations a rank may hold; 0: ranks, as many as 1f1b
};

/// The schedule of this name, one of schedule_names(). P ranks, M micro-batches, V stages per rank; bubbles and
/// activations are in timeline.h and docs/pipeline_schedules.md.
///
///   gpipe        all forwards, then all backwards (Huang et al. 2018, arXiv:1811.06965). Holds M micro-batches
///   1f1b         as soon as the pipeline is full each rank does a backward after each forward (Narayanan et al. 2021,
///                arXiv:2104.04473, section 2.2.1). Rank r holds at most P - r
///   interleaved  the same with V > 1 stages on each rank, of which rank r has r, r + P, ... (section 2.2.2). M is a
///                multiple of P
///   zb_h1        1f1b whose gradients of weights are computed later, where a rank would wait (Qi et al. 2023,
///                arXiv:2401.10241, section 2.2). Holds at most P
///   zero_bubble  the shortest that is found for the costs under the memory limit (section 3.1)
///   dualpipe     micro-batches from both ends at once; each stage is on two ranks (DeepSeek-V3, arXiv:2412.19437,
///                section 3.2.1). P even, M even and at least 2 P
///
/// Throws ConfigError, with the nearest numbers that fit, for options that do not suit it.
Schedule make_schedule(const std::string& name, const ScheduleOptions& options);

/// All of them, as above.
std::vector<std::string> schedule_names();

}  // namespace phalanx::pipeline
