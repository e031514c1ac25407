// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/time_to_loss.h"

#include <numeric>

namespace phalanx::bench_train {

void TimeToLoss::add(const std::vector<double>& losses, double seconds) {
  if (loss_ == 0) return;
  for (std::size_t step = 1; step <= losses.size(); ++step) {
    losses_.push_back(losses[step - 1]);
    if (arrived() || losses_.size() < kWindow) continue;
    const double sum = std::accumulate(losses_.end() - kWindow, losses_.end(), 0.0);
    if (sum >= loss_ * static_cast<double>(kWindow)) continue;
    steps_ = static_cast<std::int64_t>(losses_.size());
    seconds_ = seconds_before_ + seconds * static_cast<double>(step) / static_cast<double>(losses.size());
  }
  seconds_before_ += seconds;
}

}  // namespace phalanx::bench_train
