// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/ranking.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/meters/labels.h"

namespace phalanx {

std::unique_ptr<Meter> make_ranking_meter(std::string name,
                                          std::function<std::optional<double>(const Ranking&)> value) {
  return std::make_unique<MeanMeter>(
      std::move(name), [value = std::move(value)](const Batch& batch, const Step::Result& result, Mean& mean) {
        const auto labels = labels_of(batch, result);
        const auto columns = labels.scores.size(1);
        const auto* scores = labels.scores.data_ptr<double>();
        const auto* relevance = labels.relevance.data_ptr<double>();
        Ranking ranking;
        ranking.items.resize(static_cast<std::size_t>(columns));
        for (std::int64_t row = 0; row < labels.scores.size(0); ++row, scores += columns, relevance += columns) {
          ranking.relevance = {relevance, static_cast<std::size_t>(columns)};
          std::iota(ranking.items.begin(), ranking.items.end(), 0);
          std::ranges::stable_sort(ranking.items, std::greater(), [&](auto item) { return scores[item]; });
          if (const auto one = value(ranking)) mean.add(*one, 1);
        }
      });
}

}  // namespace phalanx
