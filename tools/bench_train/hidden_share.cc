// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "framework/base/quantile.h"
#include "tools/bench_train/measure.h"

namespace phalanx::bench_train {
namespace {

/// Hidden time relative to the time that could be hidden, by round.
class Shares {
 public:
  void add(double hidden, double could) {
    if (could > 0) shares_.push_back(hidden / could);
  }
  std::optional<double> median() const {
    if (shares_.empty()) return std::nullopt;
    return quantile(shares_, 0.5);
  }

 private:
  std::vector<double> shares_;
};

}  // namespace

std::optional<HiddenShare> hidden_share(const std::vector<StepTime>& after, const std::vector<StepTime>& overlapped,
                                        const std::vector<StepTime>& limit) {
  Shares of_communication, of_waiting;
  for (std::size_t round = 0; round < after.size(); ++round) {
    const double hidden = after[round].step_ms - overlapped[round].step_ms;
    const double communication = after[round].step_ms - limit[round].step_ms;
    const double computing = std::max(0.0, after[round].busy_ms - limit[round].busy_ms);
    of_communication.add(hidden, std::min(communication, limit[round].backward_ms));
    of_waiting.add(hidden, std::min(communication - computing, limit[round].backward_ms));
  }
  const auto all = of_communication.median();
  if (!all) return std::nullopt;
  return HiddenShare{.of_communication = *all, .of_waiting = of_waiting.median()};
}

}  // namespace phalanx::bench_train
