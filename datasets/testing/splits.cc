// SPDX-License-Identifier: Apache-2.0
#include "datasets/testing/splits.h"

#include <cstddef>
#include <numeric>

#include "framework/base/config/config.h"

namespace phalanx::testing {

Splits load_splits(const std::string& yaml) {
  return config::load_as<Datasets::Choice>("dataset", yaml, "test.yaml").make();
}

Batch read_samples(const Dataset& dataset, const std::vector<std::int64_t>& indices, std::uint64_t seed) {
  Batch batch;
  dataset.gather(indices, seed, batch);
  return batch;
}

Batch read_first(const Dataset& dataset, std::int64_t count, std::uint64_t seed) {
  return read_samples(dataset, first_samples(count), seed);
}

std::vector<std::int64_t> first_samples(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

std::vector<std::int64_t> row_of(const at::Tensor& matrix, std::int64_t i, std::int64_t begin, std::int64_t count) {
  const auto* first = matrix.const_data_ptr<std::int64_t>() + i * matrix.size(1) + begin;
  return {first, first + count};
}

}  // namespace phalanx::testing
