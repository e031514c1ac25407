// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/outcomes.h"

#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include "engine/meters/labels.h"

namespace phalanx {

void Outcomes::add(const Batch& batch, const Step::Result& result) {
  const auto labels = labels_of(batch, result);
  const at::Tensor relevant = labels.relevance.gt(0);
  const at::Tensor yes = labels.one_class
                             ? at::zeros_like(relevant).scatter_(1, labels.scores.argmax(-1, /*keepdim=*/true), true)
                             : labels.scores.gt(config_.threshold);
  const at::Tensor no = yes.logical_not(), irrelevant = relevant.logical_not();
  counts_.add(at::stack({yes.logical_and(relevant).sum(0), yes.logical_and(irrelevant).sum(0),
                         no.logical_and(relevant).sum(0), no.logical_and(irrelevant).sum(0)},
                        1));
}

Metrics ShareOfTruePositives::take(Communicator& group) {
  const at::Tensor counts = outcomes_.take(group);
  const auto classes = counts.size(0);
  const auto share = [this](const at::Tensor& row) {
    const auto hits = row[Outcomes::kTruePositive].item<double>(), all = hits + row[misses_].item<double>();
    return all > 0 ? hits / all : 0;
  };
  if (average_ == "micro") return {{name_, classes > 0 ? share(counts.sum(0)) : 0}};
  Metrics metrics;
  double sum = 0;
  for (std::int64_t i = 0; i < classes; ++i) {
    metrics.emplace_back(name_ + "[" + std::to_string(i) + "]", share(counts[i]));
    sum += metrics.back().second;
  }
  if (average_ == "none") return metrics;
  return {{name_, classes > 0 ? sum / static_cast<double>(classes) : 0}};
}

}  // namespace phalanx
