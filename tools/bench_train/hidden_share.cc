#include "tools/bench_train/hidden_share.h"

#include <algorithm>

#include "tools/bench/quantile.h"

namespace phalanx::bench_train {

std::optional<double> hidden_share(const std::vector<StepTime>& after, const std::vector<StepTime>& overlapped,
                                   const std::vector<StepTime>& limit) {
  std::vector<double> shares;
  for (std::size_t round = 0; round < after.size(); ++round) {
    const double could = std::min(after[round].step_ms - limit[round].step_ms, limit[round].backward_ms);
    if (could > 0) shares.push_back((after[round].step_ms - overlapped[round].step_ms) / could);
  }
  if (shares.empty()) return std::nullopt;
  return bench::quantile(shares, 0.5);
}

}  // namespace phalanx::bench_train
