// SPDX-License-Identifier: Apache-2.0
// DualPipe (DeepSeek-AI 2024, DeepSeek-V3 Technical Report, arXiv:2412.19437, section 3.2.1 and figure 5). Half of the
// micro-batches go through the ranks from the first to the last, the other half from the last to the first, and each
// rank has the stages of both ways. The eight phases follow the authors' implementation
// (github.com/deepseek-ai/DualPipe).
#include <algorithm>
#include <array>
#include <deque>

#include "framework/base/error.h"
#include "framework/partition/pipeline/makers.h"

namespace phalanx::pipeline {
namespace {

using Kind = Action::Kind;

// Writes the actions of one rank. Way 0 begins at the end of the pipeline that is nearer to the rank.
class Writer {
 public:
  Writer(const ScheduleOptions& options, int rank, std::vector<Action>& actions)
      : options_(options), rank_(rank), far_(rank >= options.ranks / 2), actions_(actions) {}

  void forward(int way) { add(Kind::kForward, way, forwards_); }

  void backward(int way, bool split) {
    add(split ? Kind::kInputGradient : Kind::kBackward, way, backwards_);
    if (split) pending_.push_back({Kind::kWeightGradient, actions_.back().stage, actions_.back().micro_batch});
  }

  void weights() {
    actions_.push_back(pending_.front());
    pending_.pop_front();
  }

 private:
  void add(Kind kind, int way, std::array<int, 2>& done) {
    const bool down = (way == 1) != far_;  // from the last rank to the first
    const int half = options_.micro_batches / 2;
    actions_.push_back(
        {kind, down ? options_.ranks - 1 - rank_ : rank_, (down ? half : 0) + done[static_cast<std::size_t>(way)]++});
  }

  const ScheduleOptions& options_;
  int rank_;
  bool far_;
  std::vector<Action>& actions_;
  std::array<int, 2> forwards_{}, backwards_{};  // counts so far, by way
  std::deque<Action> pending_;                   // gradients of weights that are still to be computed
};

void write(const ScheduleOptions& options, int rank, std::vector<Action>& actions) {
  Writer writer(options, rank, actions);
  const auto repeat = [](int times, const auto& body) {
    for (int i = 0; i < times; ++i) body(i);
  };
  const int near = std::min(rank, options.ranks - 1 - rank);  // number of ranks between this one and the nearer end
  const int inner = options.ranks / 2 - near - 1;             // number of ranks between this one and the middle
  repeat(2 * inner, [&](int) { writer.forward(0); });
  repeat(near + 1, [&](int) {
    writer.forward(0);
    writer.forward(1);
  });
  repeat(inner, [&](int) {
    writer.backward(1, true);
    writer.weights();
    writer.forward(1);
  });
  repeat(options.micro_batches / 2 - options.ranks + near + 1, [&](int) {
    writer.forward(0);
    writer.backward(1, false);
    writer.forward(1);
    writer.backward(0, false);
  });
  repeat(inner, [&](int) {
    writer.backward(1, false);
    writer.forward(1);
    writer.backward(0, false);
  });
  // In the second half of these, gradients of weights are deferred. If their number is odd, this begins with the second
  // backward of the middle one.
  bool split = false;
  repeat(near + 1, [&](int i) {
    if (i == (near + 1) / 2 && near % 2 == 1) split = true;
    writer.backward(1, split);
    if (i == (near + 1) / 2 && near % 2 == 0) split = true;
    writer.backward(0, split);
  });
  repeat(inner, [&](int) {
    writer.weights();
    writer.backward(0, true);
  });
  repeat(near + 1, [&](int) { writer.weights(); });
}

}  // namespace

Schedule make_dualpipe(const ScheduleOptions& options) {
  const int p = options.ranks, m = options.micro_batches;
  if (p % 2 != 0) {
    throw ConfigError("schedule: dualpipe needs an even number of ranks, not " + std::to_string(p) + "; use " +
                      std::to_string(p + 1));
  }
  if (m % 2 != 0 || m < 2 * p) {
    throw ConfigError(
        "schedule: dualpipe needs an even number of micro-batches, at least twice as many as ranks: not " +
        std::to_string(m) + " on " + std::to_string(p) + "; use " + std::to_string(std::max(2 * p, m + m % 2)));
  }
  Schedule schedule = empty_schedule("dualpipe", options);
  for (int rank = 0; rank < p; ++rank) write(options, rank, schedule.actions[static_cast<std::size_t>(rank)]);
  return schedule;
}

}  // namespace phalanx::pipeline
