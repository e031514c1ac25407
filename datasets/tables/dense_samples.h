// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/dataset.h"

namespace phalanx {

/// Samples of float32 numbers in memory, with a class or `width` numbers as the target of each sample. Exactly one of
/// `classes` and `numbers` is not empty.
struct DenseSamples {
  std::vector<std::int64_t> shape{};    // shape of a sample
  std::vector<float> values{};          // [n, shape...]
  std::vector<std::int64_t> classes{};  // [n]
  std::vector<float> numbers{};         // [n, width]
  std::int64_t width = 1;
};

/// Returns the spec of the samples: classification with `count` classes or, if `count` is 0, regression with targets
/// [n, width] float32.
SampleSpec spec_of(const DenseSamples& samples, std::int64_t count);

/// Returns a dataset of the samples with the spec from spec_of().
std::shared_ptr<const Dataset> make_dense(DenseSamples samples, std::int64_t count);

}  // namespace phalanx
