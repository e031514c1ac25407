#include "tools/bench_train/time_to_loss.h"

#include <numeric>

namespace phalanx::bench_train {

void TimeToLoss::add(const std::vector<double>& losses, double seconds) {
  for (std::size_t step = 0; step < losses.size() && !arrived(); ++step) {
    if (last_.size() == kWindow) last_.erase(last_.begin());
    last_.push_back(losses[step]);
    const double sum = std::accumulate(last_.begin(), last_.end(), 0.0);
    if (last_.size() < kWindow || sum >= loss_ * static_cast<double>(kWindow)) continue;
    steps_ = steps_before_ + static_cast<std::int64_t>(step) + 1;
    seconds_ = seconds_before_ + seconds * static_cast<double>(step + 1) / static_cast<double>(losses.size());
  }
  steps_before_ += static_cast<std::int64_t>(losses.size());
  seconds_before_ += seconds;
}

}  // namespace phalanx::bench_train
