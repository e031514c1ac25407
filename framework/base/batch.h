#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <vector>

namespace phalanx {

/// One rank's share of a global batch.
///
/// The loss that a global batch stands for is the mean over all its samples, however many ranks share it; so each share
/// says how many of its rows count and of how many in all. A rank whose share is empty gets one padding row, which
/// takes part in the arithmetic with weight 0, so that every rank takes the same steps.
struct Batch {
  at::Tensor input;              // [n, ...]
  at::Tensor target;             // [n, ...]
  std::int64_t valid = 0;        // the first `valid` rows are samples, the rest is padding; 0 <= valid <= n
  std::int64_t global_rows = 0;  // samples in the global batch, over all ranks; >= valid
};

/// What one sample looks like: what a model needs to know of a dataset.
struct SampleSpec {
  std::vector<std::int64_t> input;    // shape of one sample without the batch dimension: {1, 28, 28}
  std::int64_t classes = 0;           // number of target classes
  at::ScalarType dtype = at::kFloat;  // of the input; at::kLong: indices in [0, classes), such as characters
};

}  // namespace phalanx
