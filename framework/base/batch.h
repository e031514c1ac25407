// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx {

using Tensors = std::vector<at::Tensor>;

/// A class number that stands for "no target here": padding of a sequence, pixels without a label. Such positions count
/// neither in the loss nor in what is measured.
inline constexpr std::int64_t kIgnored = -100;

/// One rank's share of a global batch.
///
/// The loss of a global batch is the mean over all that counts in it (samples, or the tokens or pixels in them),
/// however many ranks share it; so each share says what of it counts and how much counts in all. A rank whose share is
/// empty gets one padding row, which takes part in the arithmetic with weight 0, so that every rank takes the same
/// steps.
struct Batch {
  Tensors inputs{};              // each [n, ...], in the order of SampleSpec::inputs
  Tensors targets{};             // each [n, ...], in the order of SampleSpec::targets
  std::int64_t valid = 0;        // the first `valid` rows are samples, the rest is padding; 0 <= valid <= n
  std::int64_t global_rows = 0;  // samples in the global batch, over all ranks; >= valid
  std::int64_t first_row = 0;    // number of the first row in the global batch

  /// How much each row counts in the loss: [n] double, on the CPU. Undefined: all rows alike, each as 1.
  at::Tensor row_weights{};
  double global_weight = 0;  // where row_weights is defined: the sum over all samples of the global batch

  std::int64_t rows() const { return inputs.at(0).size(0); }

  /// The sum of the weights of the valid rows.
  double weight() const;

  /// The same, over all ranks.
  double weight_of_all() const { return row_weights.defined() ? global_weight : static_cast<double>(global_rows); }
};

/// Rows [begin, end) of a batch. It shares their memory.
Batch rows_of(const Batch& batch, std::int64_t begin, std::int64_t end);

}  // namespace phalanx
