// SPDX-License-Identifier: Apache-2.0
// Normalized discounted cumulative gain of the k items with the highest scores, as a mean over queries that have
// relevant items (Jarvelin, Kekalainen: Cumulated Gain-Based Evaluation of IR Techniques, 2002).
//
// The gain of an item is its relevance >= 0, discounted by its position i = 1, 2, ...: divided by log2(i + 1), as is
// usual today, or by log2(i) from the second position on, as in that paper and in torchnet. The sum is divided by that
// for the best order of the items. Output [n, items], target of the same shape or class indices. See ranking.h.
#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/meters/ranking.h"

namespace phalanx {
namespace {

struct NdcgConfig {
  std::int64_t k = 10;
  std::string discount = "log2(i + 1)";

  template <class V>
  void visit(V& v) {
    v("k", k, "number of top items to consider", config::at_least(1));
    v("discount", discount, "discount at position i", config::one_of({"log2(i + 1)", "log2(i)"}));
  }
};

class Ndcg {
 public:
  explicit Ndcg(const NdcgConfig& config)
      : k_(static_cast<std::size_t>(config.k)), shift_(config.discount == "log2(i)" ? 0 : 1) {}

  std::optional<double> operator()(const Ranking& ranking) const {
    std::vector<double> gains;
    for (const auto item : ranking.items) gains.push_back(ranking.relevance[static_cast<std::size_t>(item)]);
    const double found = discounted(gains);
    std::ranges::sort(gains, std::greater());
    const double best = discounted(gains);
    return best > 0 ? std::optional(found / best) : std::nullopt;
  }

 private:
  double discounted(const std::vector<double>& gains) const {
    double sum = 0;
    for (std::size_t i = 1; i <= std::min(k_, gains.size()); ++i) {
      sum += gains[i - 1] / std::max(1.0, std::log2(static_cast<double>(i) + shift_));  // 1 at the first position
    }
    return sum;
  }

  std::size_t k_;
  double shift_;
};

const bool ndcg_registered = Meters::global().add<NdcgConfig>(
    "ndcg", "normalized discounted cumulative gain of the k items with the highest scores",
    [](const NdcgConfig& config) { return make_ranking_meter("ndcg_at_" + std::to_string(config.k), Ndcg(config)); });

}  // namespace
}  // namespace phalanx
