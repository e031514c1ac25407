// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include "engine/meters/meter.h"

namespace phalanx {

/// Reads "total_seconds" since the last take() or, for the first one, since construction, and "seconds_per_batch", both
/// from the slowest rank. Tests may pass another clock as `now`.
class TimeMeter final : public Meter {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TimeMeter(std::function<Clock::time_point()> now = Clock::now) : now_(std::move(now)), start_(now_()) {}

  void add(const Batch&, const Step::Result&) override { ++batches_; }
  Metrics take(Communicator& group) override;
  State state() override;
  void merge_state(const State& state) override;

 private:
  std::function<Clock::time_point()> now_;
  Clock::time_point start_;
  std::int64_t batches_ = 0;
};

}  // namespace phalanx
