// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "framework/parallel/pipeline/schedule.h"

namespace phalanx::pipeline {

/// An action and when it runs.
struct Span {
  Action action;
  double begin = 0, end = 0;
};

/// What a schedule comes to, if every action takes as long as its costs say.
struct Timeline {
  std::vector<std::vector<Span>> spans;  // by rank, in order
  double length = 0;                     // of the step, at whose end all ranks wait for each other
  double bubble = 0;                     // share of the ranks' time in which they wait, 0 to 1

  // The same if each rank begins its next step as soon as it has ended this one (arXiv:2401.10241, section 2.3): of the
  // longest time between a rank's first begin and its last end.
  double longest_rank = 0;
  double bubble_without_stop = 0;

  // By rank: the most micro-batches whose activations it holds at once, from the begin of the forward to the end of
  // what needs them last. 1 is what a micro-batch leaves on a stage, or on all of those that interleaved gives to a
  // rank.
  std::vector<double> live;
};

/// Runs a schedule: each rank does its actions in their order, and each of them as soon as what it needs has come;
/// sends are asynchronous. Throws Error, which names rank, action and what it waits for, where ranks wait for ever,
/// where a micro-batch has not exactly one forward and one whole backward on each stage, or where a backward is not on
/// the rank of its forward.
Timeline simulate(const Schedule& schedule, const Costs& costs = {});

/// The bubble that is known of schedules of this name with equal stages of costs {1, 1, 1, 0}; negative: none is.
///
///     gpipe, 1f1b   (P - 1) / (M + P - 1)                P ranks, M micro-batches, V stages per rank
///     interleaved   (P - 1) / (V M + P - 1)
///     zb_h1         (P - 1) / (3 M + P - 1)              from P micro-batches on
double known_bubble(const Schedule& schedule);

}  // namespace phalanx::pipeline
