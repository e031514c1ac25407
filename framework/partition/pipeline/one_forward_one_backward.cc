// SPDX-License-Identifier: Apache-2.0
// gpipe, 1f1b and interleaved: a rank runs some forwards first, then alternates forwards and backwards, then runs the
// remaining backwards. They differ in the number of first forwards, and in the order of a rank's actions.
#include <algorithm>
#include <functional>

#include "framework/base/error.h"
#include "framework/partition/pipeline/makers.h"

namespace phalanx::pipeline {
namespace {

using Kind = Action::Kind;
using Nth = std::function<Action(int rank, int k)>;

Schedule alternate(const char* name, const ScheduleOptions& options, const std::function<int(int rank)>& warm_up,
                   const Nth& forward, const Nth& backward) {
  Schedule schedule = empty_schedule(name, options);
  const int count = options.micro_batches * options.stages_per_rank;
  for (int rank = 0; rank < options.ranks; ++rank) {
    auto& own = schedule.actions[static_cast<std::size_t>(rank)];
    const int first = std::min(warm_up(rank), count);
    for (int k = 0; k < first; ++k) own.push_back(forward(rank, k));
    for (int k = first; k < count; ++k) {
      own.push_back(forward(rank, k));
      own.push_back(backward(rank, k - first));
    }
    for (int k = count - first; k < count; ++k) own.push_back(backward(rank, k));
  }
  return schedule;
}

Schedule one_stage(const char* name, const ScheduleOptions& options, const std::function<int(int rank)>& warm_up) {
  return alternate(
      name, options, warm_up, [](int rank, int k) { return Action{Kind::kForward, rank, k}; },
      [](int rank, int k) { return Action{Kind::kBackward, rank, k}; });
}

}  // namespace

Schedule make_gpipe(const ScheduleOptions& options) {
  return one_stage("gpipe", options, [&](int) { return options.micro_batches; });
}

Schedule make_1f1b(const ScheduleOptions& options) {
  return one_stage("1f1b", options, [&](int rank) { return options.ranks - rank - 1; });
}

// Micro-batches go through in groups of P: a whole group goes through a rank's first stage, then through its second.
Schedule make_interleaved(const ScheduleOptions& options) {
  const int p = options.ranks, v = options.stages_per_rank, m = options.micro_batches;
  if (m % p != 0) {
    throw ConfigError("schedule: interleaved takes micro-batches in groups of as many as there are ranks: " +
                      std::to_string(m) + " is not a multiple of " + std::to_string(p) + "; use " +
                      (m > p ? std::to_string(m / p * p) + " or " : "") + std::to_string((m / p + 1) * p));
  }
  const auto nth = [p, v](Kind kind, int rank, int k) {
    const int turn = k % (p * v) / p, chunk = kind == Kind::kForward ? turn : v - 1 - turn;
    return Action{kind, chunk * p + rank, k / (p * v) * p + k % p};
  };
  const auto warm_up = [p, v, m](int rank) { return m == p ? m * v : 2 * (p - rank - 1) + (v - 1) * p; };
  return alternate(
      "interleaved", options, warm_up, [nth](int rank, int k) { return nth(Kind::kForward, rank, k); },
      [nth](int rank, int k) { return nth(Kind::kBackward, rank, k); });
}

}  // namespace phalanx::pipeline
