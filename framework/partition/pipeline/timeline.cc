// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/pipeline/timeline.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "framework/base/error.h"

namespace phalanx::pipeline {
namespace {

using Kind = Action::Kind;

std::string to_text(const Action& action) {
  const char* const what = action.kind == Kind::kForward         ? "the forward"
                           : action.kind == Kind::kBackward      ? "the backward"
                           : action.kind == Kind::kInputGradient ? "the gradient of the input"
                                                                 : "the gradient of the weights";
  return std::string(what) + " of micro-batch " + std::to_string(action.micro_batch) + " on stage " +
         std::to_string(action.stage);
}

bool gives_input_gradient(Kind kind) { return kind == Kind::kBackward || kind == Kind::kInputGradient; }
bool gives_weight_gradient(Kind kind) { return kind == Kind::kBackward || kind == Kind::kWeightGradient; }

double length_of(Kind kind, const Costs& costs) {
  switch (kind) {
    case Kind::kForward:
      return costs.forward;
    case Kind::kBackward:
      return costs.input_gradient + costs.weight_gradient;
    case Kind::kInputGradient:
      return costs.input_gradient;
    case Kind::kWeightGradient:
      break;
  }
  return costs.weight_gradient;
}

class Run {
 public:
  Run(const Schedule& schedule, const Costs& costs)
      : schedule_(schedule), costs_(costs), forwards_(pairs()), gradients_(pairs()) {
    check_counts();
    timeline_.spans.resize(schedule.actions.size());
  }

  Timeline finish() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < schedule_.actions.size(); ++rank) moved = advance(rank) || moved;
    }
    for (std::size_t rank = 0; rank < schedule_.actions.size(); ++rank) {
      const auto& own = schedule_.actions[rank];
      const auto done = timeline_.spans[rank].size();
      if (done < own.size()) fail_at(rank, own[done]);
    }
    sum_up();
    return std::move(timeline_);
  }

 private:
  struct Done {
    double end = -1;  // negative: not done yet
    std::size_t rank = 0;
  };

  std::size_t pairs() const {
    return static_cast<std::size_t>(schedule_.stages) * static_cast<std::size_t>(schedule_.micro_batches);
  }
  std::size_t index(int stage, int micro_batch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(schedule_.micro_batches) +
           static_cast<std::size_t>(micro_batch);
  }

  void check_counts() const {
    constexpr std::array kKinds{Kind::kForward, Kind::kInputGradient, Kind::kWeightGradient};
    std::array<std::vector<int>, kKinds.size()> seen;  // by stage and micro-batch
    for (auto& counts : seen) counts.resize(pairs());
    for (const auto& own : schedule_.actions) {
      for (const auto& action : own) {
        if (action.stage < 0 || action.stage >= schedule_.stages || action.micro_batch < 0 ||
            action.micro_batch >= schedule_.micro_batches) {
          throw Error("schedule " + schedule_.name + " has " + to_text(action) + ", which does not exist");
        }
        const auto at = index(action.stage, action.micro_batch);
        if (action.kind == Kind::kForward) ++seen[0][at];
        if (gives_input_gradient(action.kind)) ++seen[1][at];
        if (gives_weight_gradient(action.kind)) ++seen[2][at];
      }
    }
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        for (int i = 0; i < schedule_.micro_batches; ++i) {
          const int count = seen[kind][index(stage, i)];
          if (count == 1) continue;
          throw Error("schedule " + schedule_.name + " has " + to_text({kKinds[kind], stage, i}) + " " +
                      std::to_string(count) + " times");
        }
      }
    }
  }

  // Returns the time at which the inputs of an action have arrived. If one has not, returns a negative number and names
  // it.
  double ready(std::size_t rank, const Action& action, std::string* missing = nullptr) const {
    double at = 0;
    const auto need = [&](bool forward, int stage) {
      if (at < 0) return;
      const Done& done = (forward ? forwards_ : gradients_)[index(stage, action.micro_batch)];
      if (done.end < 0) {
        if (missing != nullptr) {
          *missing = to_text({forward ? Kind::kForward : Kind::kInputGradient, stage, action.micro_batch});
        }
        at = -1;
        return;
      }
      at = std::max(at, done.end + (done.rank == rank ? 0 : costs_.transfer));
    };
    if (action.kind == Kind::kForward) {
      if (action.stage > 0) need(true, action.stage - 1);
      return at;
    }
    need(action.kind != Kind::kWeightGradient, action.stage);
    if (at >= 0 && action.kind != Kind::kWeightGradient && action.stage + 1 < schedule_.stages) {
      need(false, action.stage + 1);
    }
    if (at >= 0) check_rank(rank, action);
    return at;
  }

  void check_rank(std::size_t rank, const Action& action) const {
    const auto forward = forwards_[index(action.stage, action.micro_batch)].rank;
    if (forward == rank) return;
    throw Error("schedule " + schedule_.name + " has " + to_text(action) + " on rank " + std::to_string(rank) +
                ", but its forward on rank " + std::to_string(forward));
  }

  bool advance(std::size_t rank) {
    const auto& own = schedule_.actions[rank];
    auto& spans = timeline_.spans[rank];
    bool moved = false;
    for (; spans.size() < own.size(); moved = true) {
      const auto& action = own[spans.size()];
      const double came = ready(rank, action);
      if (came < 0) break;
      const double begin = std::max(came, spans.empty() ? 0 : spans.back().end);
      const double end = begin + length_of(action.kind, costs_);
      spans.push_back({action, begin, end});
      if (action.kind != Kind::kWeightGradient) {
        auto& done = action.kind == Kind::kForward ? forwards_ : gradients_;
        done[index(action.stage, action.micro_batch)] = {end, rank};
      }
    }
    return moved;
  }

  [[noreturn]] void fail_at(std::size_t rank, const Action& action) const {
    std::string missing;
    ready(rank, action, &missing);
    throw Error("schedule " + schedule_.name + ": ranks wait for ever: rank " + std::to_string(rank) + " with " +
                to_text(action) + " for " + missing);
  }

  void sum_up() {
    double busy = 0;
    for (std::size_t rank = 0; rank < timeline_.spans.size(); ++rank) {
      const auto& spans = timeline_.spans[rank];
      double live = 0, most = 0;
      for (const auto& span : spans) {
        timeline_.length = std::max(timeline_.length, span.end);
        busy += span.end - span.begin;
        if (span.action.kind == Kind::kForward) most = std::max(most, ++live);
        if (gives_weight_gradient(span.action.kind)) --live;
      }
      if (!spans.empty()) {
        timeline_.longest_rank = std::max(timeline_.longest_rank, spans.back().end - spans.front().begin);
      }
      timeline_.live.push_back(most * schedule_.ranks / schedule_.stages);
    }
    const auto ranks = static_cast<double>(timeline_.spans.size());
    if (busy == 0) return;
    timeline_.bubble = 1 - busy / (timeline_.length * ranks);
    timeline_.bubble_without_stop = 1 - busy / (timeline_.longest_rank * ranks);
  }

  const Schedule& schedule_;
  Costs costs_;
  Timeline timeline_;
  std::vector<Done> forwards_, gradients_;  // ends of forwards and of input gradients, by stage and micro-batch
};

}  // namespace

Timeline simulate(const Schedule& schedule, const Costs& costs) { return Run(schedule, costs).finish(); }

double known_bubble(const Schedule& schedule) {
  const double p = schedule.ranks, m = schedule.micro_batches, v = static_cast<double>(schedule.stages) / p;
  if (schedule.name == "gpipe" || schedule.name == "1f1b") return (p - 1) / (m + p - 1);
  if (schedule.name == "interleaved") return (p - 1) / (v * m + p - 1);
  if (schedule.name == "zb_h1" && m >= p) return (p - 1) / (3 * m + p - 1);
  return -1;
}

}  // namespace phalanx::pipeline
