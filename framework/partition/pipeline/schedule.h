// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx::pipeline {

/// An action of a rank: one pass of one micro-batch through one of its stages.
struct Action {
  enum class Kind {
    kForward,
    kBackward,        // gradients of the stage's input and parameters
    kInputGradient,   // gradients of the stage's input only
    kWeightGradient,  // gradients of the stage's parameters, later
  };
  Kind kind = Kind::kForward;
  int stage = 0, micro_batch = 0;

  bool operator==(const Action&) const = default;
};

/// The order of each rank's actions in one step of a pipeline. A forward needs the forward of the stage before, and a
/// backward needs the backward of the stage after. Every rank runs its actions one after the other.
struct Schedule {
  std::string name;
  int ranks = 1, stages = 1, micro_batches = 1;
  std::vector<std::vector<Action>> actions;  // by rank

  /// Returns the rank that computes a micro-batch on a stage.
  int rank_of(int stage, int micro_batch) const;

  /// Returns the stages whose parameters a rank has, ascending.
  std::vector<int> stages_of(int rank) const;
};

/// The times that actions take on any stage, in any unit. A full backward takes as long as the two gradients together.
struct Costs {
  double forward = 1, input_gradient = 1, weight_gradient = 1;
  double transfer = 0;  // time to send the result of a stage to another rank
};

struct ScheduleOptions {
  int ranks = 1, stages_per_rank = 1, micro_batches = 1;
  Costs costs{};         // zero_bubble: costs for which the schedule is searched
  int memory_limit = 0;  // zero_bubble: micro-batches whose activations a rank may hold; 0: P, as in 1f1b
};

/// Returns the schedule of this name, one of schedule_names(). There are P ranks, M micro-batches and V stages per
/// rank. Bubbles and activations are described in timeline.h and docs/pipeline_schedules.md.
///
///   gpipe        all forwards, then all backwards (Huang et al. 2018, arXiv:1811.06965). Holds M micro-batches
///   1f1b         as soon as the pipeline is full each rank does a backward after each forward (Narayanan et al. 2021,
///                arXiv:2104.04473, section 2.2.1). Rank r holds at most P - r
///   interleaved  1f1b with V > 1 stages on each rank: rank r has stages r, r + P, ... (section 2.2.2). M is a multiple
///                of P
///   zb_h1        1f1b that computes weight gradients later, while a rank would wait (Qi et al. 2023,
///                arXiv:2401.10241, section 2.2). Holds at most P
///   zero_bubble  the shortest that is found for the costs under the memory limit (section 3.1)
///   dualpipe     micro-batches from both ends at once; each stage is on two ranks (DeepSeek-V3, arXiv:2412.19437,
///                section 3.2.1). P even, M even and at least 2 P
///
/// Throws ConfigError, with the nearest numbers that fit, for options that do not suit the schedule.
Schedule make_schedule(const std::string& name, const ScheduleOptions& options);

/// Returns all names, in the order above.
std::vector<std::string> schedule_names();

}  // namespace phalanx::pipeline
