// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/thresholds.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/meters/across_ranks.h"
#include "engine/meters/labels.h"
#include "engine/meters/meter.h"

namespace phalanx {
namespace {

Thresholds thresholds_of(std::vector<std::pair<double, bool>> samples) {
  std::ranges::sort(samples, std::greater(), &std::pair<double, bool>::first);
  Thresholds thresholds;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (i == 0 || samples[i].first != samples[i - 1].first) thresholds.emplace_back();
    ++(samples[i].second ? thresholds.back().positives : thresholds.back().negatives);
  }
  return thresholds;
}

}  // namespace

std::int64_t positives_of(const Thresholds& thresholds) {
  std::int64_t count = 0;
  for (const auto& threshold : thresholds) count += threshold.positives;
  return count;
}

std::int64_t negatives_of(const Thresholds& thresholds) {
  std::int64_t count = 0;
  for (const auto& threshold : thresholds) count += threshold.negatives;
  return count;
}

double average_precision(const Thresholds& thresholds) {
  const auto positives = static_cast<double>(positives_of(thresholds));
  double sum = 0, found = 0, right = 0;
  for (const auto& threshold : thresholds) {
    right += static_cast<double>(threshold.positives);
    found += static_cast<double>(threshold.positives + threshold.negatives);
    sum += static_cast<double>(threshold.positives) * (right / found);
  }
  return positives > 0 ? sum / positives : 0;
}

double area_under_roc(const Thresholds& thresholds) {
  const auto positives = static_cast<double>(positives_of(thresholds));
  const auto negatives = static_cast<double>(negatives_of(thresholds));
  double twice_won = 0, below = negatives;  // pairs, as whole numbers; negatives with lower scores
  for (const auto& threshold : thresholds) {
    const auto equal = static_cast<double>(threshold.negatives);
    below -= equal;
    twice_won += static_cast<double>(threshold.positives) * (2 * below + equal);
  }
  return positives * negatives > 0 ? twice_won / (2 * positives * negatives) : std::numeric_limits<double>::quiet_NaN();
}

void Scores::add(const Batch& batch, const Step::Result& result) {
  const auto labels = labels_of(batch, result);
  columns_ = labels.scores.size(1);
  scores_.push_back(labels.scores.flatten());
  relevant_.push_back(labels.relevance.gt(0).flatten());
}

std::vector<Thresholds> Scores::take(Communicator& group) {
  Scores mine = std::exchange(*this, {});
  const auto columns = largest_of_ranks(mine.columns_, group);
  const at::Tensor scores = gather_ranks(joined(std::move(mine.scores_), at::kDouble), group);
  const at::Tensor relevant = gather_ranks(joined(std::move(mine.relevant_), at::kBool), group);
  const auto* score = scores.data_ptr<double>();
  const auto* is_relevant = relevant.data_ptr<bool>();
  std::vector<Thresholds> all;
  for (std::int64_t column = 0; column < columns; ++column) {
    std::vector<std::pair<double, bool>> samples;
    for (auto i = column; i < scores.numel(); i += columns) samples.emplace_back(score[i], is_relevant[i]);
    all.push_back(thresholds_of(std::move(samples)));
  }
  return all;
}

std::vector<at::Tensor> Scores::state() const {
  return {at::full({1}, columns_, at::kLong), joined(scores_, at::kDouble), joined(relevant_, at::kBool)};
}

void Scores::merge_state(const std::vector<at::Tensor>& state) {
  columns_ = std::max(columns_, state.at(0).item<std::int64_t>());
  scores_.push_back(state.at(1));
  relevant_.push_back(state.at(2));
}

}  // namespace phalanx
