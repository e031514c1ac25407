// SPDX-License-Identifier: Apache-2.0
#include "datasets/sample_order.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "framework/base/batch.h"
#include "framework/base/error.h"

namespace phalanx {

std::vector<std::int64_t> labels_of(const Dataset& dataset, const char* sampler) {
  const auto& targets = dataset.spec().targets;
  if (targets.size() != 1 || !targets[0].shape.empty() || targets[0].classes == 0) {
    throw ConfigError(std::string("loader.sampler: ") + sampler +
                      " needs samples with one class each, which this dataset does not have; use another sampler");
  }
  std::vector<std::int64_t> labels(static_cast<std::size_t>(dataset.size()));
  if (dataset.label(0) >= 0) {
    for (std::int64_t i = 0; i < dataset.size(); ++i) labels[static_cast<std::size_t>(i)] = dataset.label(i);
    return labels;
  }
  constexpr std::int64_t kRead = 256;
  Batch batch;
  for (std::int64_t begin = 0; begin < dataset.size(); begin += kRead) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(kRead, dataset.size() - begin)));
    std::iota(indices.begin(), indices.end(), begin);
    dataset.gather(indices, 0, batch);
    std::copy_n(batch.targets[0].const_data_ptr<std::int64_t>(), indices.size(), labels.begin() + begin);
  }
  return labels;
}

}  // namespace phalanx
