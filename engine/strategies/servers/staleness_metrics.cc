// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/servers/staleness_metrics.h"

#include <cstddef>

namespace phalanx {

Metrics staleness_metrics(const std::string& prefix, const std::vector<std::int64_t>& reads) {
  double pulls = 0, sum = 0, most = 0;
  Metrics histogram;
  for (std::size_t behind = 0; behind < reads.size(); ++behind) {
    if (reads[behind] == 0) continue;
    const auto count = static_cast<double>(reads[behind]);
    pulls += count;
    sum += count * static_cast<double>(behind);
    most = static_cast<double>(behind);
    histogram.emplace_back(prefix + "pulls_at_staleness_" + std::to_string(behind), count);
  }
  Metrics all{{prefix + "pulls", pulls},
              {prefix + "staleness_mean", pulls > 0 ? sum / pulls : 0},
              {prefix + "staleness_max", most}};
  all.insert(all.end(), histogram.begin(), histogram.end());
  return all;
}

}  // namespace phalanx
