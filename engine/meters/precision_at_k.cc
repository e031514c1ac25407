// SPDX-License-Identifier: Apache-2.0
// The share of relevant items among the k items with the highest scores, as a mean over queries (torchnet's
// PrecisionAtKMeter). Output [n, items], target of the same shape, above 0 for relevant items, or class indices. See
// ranking.h.
#include <algorithm>

#include "engine/meters/ranking.h"

namespace phalanx {
namespace {

struct PrecisionAtKConfig {
  std::int64_t k = 10;

  template <class V>
  void visit(V& v) {
    v("k", k, "number of top items to consider", config::at_least(1));
  }
};

double hits(const Ranking& ranking, std::int64_t k) {
  const auto first = std::min<std::size_t>(static_cast<std::size_t>(k), ranking.items.size());
  double hits = 0;
  for (std::size_t i = 0; i < first; ++i) hits += ranking.relevance[static_cast<std::size_t>(ranking.items[i])] > 0;
  return hits;
}

const bool precision_at_k_registered = Meters::global().add<PrecisionAtKConfig>(
    "precision_at_k", "share of relevant items among the k with the highest scores",
    [](const PrecisionAtKConfig& config) {
      return make_ranking_meter("precision_at_" + std::to_string(config.k), [k = config.k](const Ranking& ranking) {
        return hits(ranking, k) / static_cast<double>(k);
      });
    });

}  // namespace
}  // namespace phalanx
