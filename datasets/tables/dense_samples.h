// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "datasets/dataset.h"

namespace phalanx {

/// Samples of float32 numbers, held in memory, with their targets: a class or `width` numbers for each sample. Exactly
/// one of `classes` and `numbers` is not empty.
struct DenseSamples {
  std::vector<std::int64_t> shape{};    // of a sample
  std::vector<float> values{};          // [n, shape...]
  std::vector<std::int64_t> classes{};  // [n]
  std::vector<float> numbers{};         // [n, width]
  std::int64_t width = 1;
};

/// Returns their spec: of classification with `count` classes or, if that is 0, of regression, with targets
/// [n, width] float32.
SampleSpec spec_of(const DenseSamples& samples, std::int64_t count);

/// Returns a dataset of them, with that spec.
std::shared_ptr<const Dataset> make_dense(DenseSamples samples, std::int64_t count);

}  // namespace phalanx
