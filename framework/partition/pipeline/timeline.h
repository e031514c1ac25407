// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/partition/pipeline/schedule.h"

namespace phalanx::pipeline {

/// An action and the time when it runs.
struct Span {
  Action action;
  double begin = 0, end = 0;
};

/// The times of a schedule if every action takes as long as its costs say.
struct Timeline {
  std::vector<std::vector<Span>> spans;  // by rank, in order
  double length = 0;                     // of the step, at the end of which all ranks wait for each other
  double bubble = 0;                     // share of the ranks' time in which they wait, from 0 to 1

  // The same if each rank begins its next step as soon as it has ended this one (arXiv:2401.10241, section 2.3).
  // longest_rank is the longest time from the start of a rank's first action to the end of its last one.
  double longest_rank = 0;
  double bubble_without_stop = 0;

  // By rank: the most micro-batches whose activations it holds at the same time, from the start of the forward to the
  // end of the last action that needs them. The unit is the activations of one micro-batch on one stage or, with
  // interleaved, on all stages of a rank.
  std::vector<double> live;
};

/// Runs a schedule: each rank runs its actions in order, each one as soon as its inputs have arrived; sends are
/// asynchronous. Throws Error in three cases: ranks wait forever (the error names the rank, the action and the missing
/// input), a micro-batch does not have exactly one forward and one whole backward on each stage, or a backward is not
/// on the rank of its forward.
Timeline simulate(const Schedule& schedule, const Costs& costs = {});

/// Returns the known bubble of schedules of this name with equal stages and costs {1, 1, 1, 0}, or a negative number if
/// no formula is known.
///
///     gpipe, 1f1b   (P - 1) / (M + P - 1)                P ranks, M micro-batches, V stages per rank
///     interleaved   (P - 1) / (V M + P - 1)
///     zb_h1         (P - 1) / (3 M + P - 1)              from P micro-batches on
double known_bubble(const Schedule& schedule);

}  // namespace phalanx::pipeline
