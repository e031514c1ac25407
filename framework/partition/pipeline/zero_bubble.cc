// SPDX-License-Identifier: Apache-2.0
// zb_h1 and zero_bubble: gradients of weights are needed only at the end of the step, so a rank computes them while it
// would otherwise wait (Qi et al. 2023, Zero Bubble Pipeline Parallelism, arXiv:2401.10241).
//
// Both are made by simulating the pipeline. A rank that is free computes an input gradient if its inputs have arrived;
// otherwise a forward, if its input has arrived and memory allows; otherwise a weight gradient. zero_bubble simulates
// several variants and takes the shortest.
#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "framework/base/error.h"
#include "framework/partition/pipeline/makers.h"
#include "framework/partition/pipeline/timeline.h"

namespace phalanx::pipeline {
namespace {

using Kind = Action::Kind;

struct Rules {
  std::vector<int> warm_up;      // by rank: forwards before the first input gradient, if their inputs have arrived
  int max_live = 1;              // micro-batches whose activations a rank may hold
  bool forward_first = false;    // if both a forward and an input gradient could begin
  std::vector<int> max_pending;  // by rank: weight gradients deferred while there is other work
};

class Greedy {
 public:
  Greedy(const ScheduleOptions& options, const Rules& rules)
      : options_(options),
        rules_(rules),
        ranks_(static_cast<std::size_t>(options.ranks)),
        forward_end_(ranks_.size(), std::vector<double>(static_cast<std::size_t>(options.micro_batches), kNever)),
        gradient_end_(forward_end_) {}

  // Returns nothing if the ranks cannot continue.
  std::optional<Schedule> run(const char* name) {
    Schedule schedule = empty_schedule(name, options_);
    for (std::size_t left = ranks_.size() * 3 * forward_end_[0].size(); left > 0; --left) {
      // Choose the rank that can begin an action first. If there are several, choose the last one, because others wait
      // for it.
      std::optional<Choice> next;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        const auto choice = choose(rank);
        if (choice && (!next || choice->begin <= next->begin)) next = choice;
      }
      if (!next) return std::nullopt;
      execute(*next);
      schedule.actions[next->rank].push_back(next->action);
    }
    return schedule;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Rank {
    double free = 0;
    int forwards = 0, gradients = 0, weights = 0;  // done so far
  };
  struct Choice {
    std::size_t rank = 0;
    Action action;
    double begin = 0;
  };

  double forward_comes(std::size_t rank) const {
    const auto k = static_cast<std::size_t>(ranks_[rank].forwards);
    if (k == forward_end_[rank].size()) return kNever;
    return rank == 0 ? 0 : forward_end_[rank - 1][k] + options_.costs.transfer;
  }

  double gradient_comes(std::size_t rank) const {
    const auto k = static_cast<std::size_t>(ranks_[rank].gradients);
    if (k == gradient_end_[rank].size() || ranks_[rank].gradients == ranks_[rank].forwards) return kNever;
    const double own = forward_end_[rank][k];
    return rank + 1 == ranks_.size() ? own : std::max(own, gradient_end_[rank + 1][k] + options_.costs.transfer);
  }

  std::optional<Choice> choose(std::size_t rank) const {
    const Rank& own = ranks_[rank];
    const int number = static_cast<int>(rank);
    const bool may_forward = own.forwards - own.weights < rules_.max_live;
    const bool warm = own.forwards >= std::clamp(rules_.warm_up[rank], 1, options_.micro_batches);
    const bool owes = own.gradients > own.weights;
    const double forward = may_forward ? forward_comes(rank) : kNever;
    const double gradient = warm || !may_forward ? gradient_comes(rank) : kNever;
    const Choice of_forward{rank, {Kind::kForward, number, own.forwards}, std::max(own.free, forward)};
    const Choice of_gradient{rank, {Kind::kInputGradient, number, own.gradients}, std::max(own.free, gradient)};
    const Choice of_weights{rank, {Kind::kWeightGradient, number, own.weights}, own.free};
    if (owes && own.gradients - own.weights > rules_.max_pending[rank]) return of_weights;
    const bool both = forward <= own.free && gradient <= own.free;
    if (both) return rules_.forward_first ? of_forward : of_gradient;
    if (gradient <= own.free) return of_gradient;
    if (forward <= own.free) return of_forward;
    if (owes) return of_weights;
    if (forward == kNever && gradient == kNever) return std::nullopt;
    return gradient <= forward ? of_gradient : of_forward;
  }

  void execute(const Choice& choice) {
    Rank& own = ranks_[choice.rank];
    const auto k = static_cast<std::size_t>(choice.action.micro_batch);
    switch (choice.action.kind) {
      case Kind::kForward:
        own.free = forward_end_[choice.rank][k] = choice.begin + options_.costs.forward;
        ++own.forwards;
        break;
      case Kind::kInputGradient:
        own.free = gradient_end_[choice.rank][k] = choice.begin + options_.costs.input_gradient;
        ++own.gradients;
        break;
      default:
        own.free = choice.begin + options_.costs.weight_gradient;
        ++own.weights;
    }
  }

  const ScheduleOptions& options_;
  const Rules& rules_;
  std::vector<Rank> ranks_;
  std::vector<std::vector<double>> forward_end_, gradient_end_;  // by rank and micro-batch
};

// For each rank: `steps` for itself and for each rank after it, plus `more`.
std::vector<int> by_ranks_behind(const ScheduleOptions& options, int steps, int more) {
  std::vector<int> counts;
  for (int rank = 0; rank < options.ranks; ++rank) counts.push_back(std::max(0, steps * (options.ranks - rank) + more));
  return counts;
}

// For each rank: `steps` for each rank before it, plus `more`.
std::vector<int> by_ranks_before(const ScheduleOptions& options, int steps, int more) {
  std::vector<int> counts;
  for (int rank = 0; rank < options.ranks; ++rank) counts.push_back(steps * rank + more);
  return counts;
}

// Makes a schedule of `first` forwards, followed by repeated groups of a forward, an input gradient and a weight
// gradient. The weight gradients lag `owed` micro-batches behind, and the remaining ones follow at the end.
Schedule alternate(const char* name, const ScheduleOptions& options, const std::vector<int>& first,
                   const std::vector<int>& owed) {
  Schedule schedule = empty_schedule(name, options);
  const int m = options.micro_batches;
  for (int rank = 0; rank < options.ranks; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    auto& own = schedule.actions[index];
    const int ahead = std::clamp(first[index], 0, m), behind = std::clamp(owed[index], 0, m);
    const auto add = [&](Kind kind, int micro_batch) { own.push_back({kind, rank, micro_batch}); };
    for (int k = 0; k < ahead; ++k) add(Kind::kForward, k);
    for (int k = 0; k < m; ++k) {
      if (ahead + k < m) add(Kind::kForward, ahead + k);
      add(Kind::kInputGradient, k);
      if (k >= behind) add(Kind::kWeightGradient, k - behind);
    }
    for (int k = m - behind; k < m; ++k) add(Kind::kWeightGradient, k);
  }
  return schedule;
}

// Keeps the shortest schedule within a memory limit. Among equally long ones, it keeps the one whose ranks take the
// least time.
class Search {
 public:
  Search(const ScheduleOptions& options, int limit) : options_(options), limit_(limit) {}

  void consider(std::optional<Schedule> schedule) {
    if (!schedule) return;
    const Timeline timeline = simulate(*schedule, options_.costs);
    if (*std::ranges::max_element(timeline.live) > limit_) return;
    const bool better = timeline.length < length_ * (1 - kSame);
    const bool as_long = timeline.length < length_ * (1 + kSame);
    if (best_ && !better && !(as_long && timeline.longest_rank < longest_ * (1 - kSame))) return;
    best_ = std::move(schedule);
    length_ = timeline.length;
    longest_ = timeline.longest_rank;
  }

  std::optional<Schedule> best() && { return std::move(best_); }

 private:
  static constexpr double kSame = 1e-9;

  const ScheduleOptions& options_;
  int limit_;
  std::optional<Schedule> best_;
  double length_ = std::numeric_limits<double>::infinity(), longest_ = 0;
};

}  // namespace

// Like 1f1b, but rank r defers the weight gradients of r micro-batches.
Schedule make_zb_h1(const ScheduleOptions& options) {
  return alternate("zb_h1", options, by_ranks_behind(options, 1, -1), by_ranks_before(options, 1, 0));
}

Schedule make_zero_bubble(const ScheduleOptions& options) {
  constexpr const char* kName = "zero_bubble";
  const int limit = options.memory_limit > 0 ? options.memory_limit : options.ranks, all = options.micro_batches;
  Search search(options, limit);
  const std::vector<std::vector<int>> owing{by_ranks_before(options, 0, 0), by_ranks_before(options, 0, 1),
                                            by_ranks_before(options, 1, 0), by_ranks_before(options, 2, 0),
                                            by_ranks_before(options, 0, all)};
  for (const int steps : {1, 2}) {
    for (int more = -options.ranks; more < options.ranks; more += std::max(1, options.ranks / 4)) {
      const auto first = by_ranks_behind(options, steps, more);
      for (const auto& owed : owing) {
        for (const bool forward_first : {false, true}) {
          const Rules rules{.warm_up = first, .max_live = limit, .forward_first = forward_first, .max_pending = owed};
          search.consider(Greedy(options, rules).run(kName));
        }
      }
    }
    for (int more = -2; more <= 0; ++more) {
      for (const auto& owed : owing) {
        search.consider(alternate(kName, options, by_ranks_behind(options, steps, more), owed));
      }
    }
  }
  if (auto best = std::move(search).best()) return *std::move(best);
  throw ConfigError("schedule: zero_bubble found no order with the activations of " + std::to_string(limit) +
                    " micro-batches on each of " + std::to_string(options.ranks) + " ranks; increase memory_limit");
}

}  // namespace phalanx::pipeline
