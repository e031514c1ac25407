// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "framework/base/batch.h"

namespace phalanx::testing {

/// Returns the splits of a config whose section `dataset` is `yaml`.
Splits load_splits(const std::string& yaml);

/// Returns these samples of `dataset` as one batch.
Batch read_samples(const Dataset& dataset, const std::vector<std::int64_t>& indices, std::uint64_t seed = 1);

/// Returns samples 0, 1, ..., count - 1 of `dataset` as one batch.
Batch read_first(const Dataset& dataset, std::int64_t count, std::uint64_t seed = 1);

/// Returns 0, 1, ..., count - 1.
std::vector<std::int64_t> first_samples(std::int64_t count);

/// Returns elements begin, ..., begin + count - 1 of row `i` of a matrix of integers.
std::vector<std::int64_t> row_of(const at::Tensor& matrix, std::int64_t i, std::int64_t begin, std::int64_t count);

}  // namespace phalanx::testing
