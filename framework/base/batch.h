// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace phalanx {

using Tensors = std::vector<at::Tensor>;

/// The class number that marks a position without a target, such as the padding of a sequence or a pixel without a
/// label. Such positions count neither in the loss nor in the metrics.
inline constexpr std::int64_t kIgnored = -100;

/// One rank's share of a global batch.
///
/// The loss of a global batch is the mean over everything that counts in it (samples, or the tokens or pixels in them),
/// however many ranks share the batch. So each share says which of its rows count and how much counts in the global
/// batch. A rank whose share is empty gets one padding row, which takes part in the arithmetic with weight 0, so that
/// every rank takes the same steps.
struct Batch {
  Tensors inputs{};              // each [n, ...], in the order of SampleSpec::inputs
  Tensors targets{};             // each [n, ...], in the order of SampleSpec::targets
  std::int64_t valid = 0;        // the first `valid` rows are samples, the rest is padding; 0 <= valid <= n
  std::int64_t global_rows = 0;  // samples in the global batch, over all ranks; >= valid
  std::int64_t first_row = 0;    // number of the first row in the global batch

  /// The weight of each row in the loss: [n] float64, on the CPU. If undefined, every row has weight 1.
  at::Tensor row_weights{};
  double global_weight = 0;  // the sum over all samples of the global batch, if row_weights is defined

  std::int64_t rows() const { return inputs.at(0).size(0); }

  /// The sum of the weights of the valid rows.
  double weight() const;

  /// The sum of the weights of the global batch, over all ranks.
  double weight_of_all() const { return row_weights.defined() ? global_weight : static_cast<double>(global_rows); }
};

/// Returns rows [begin, end) of a batch. They share its memory.
Batch rows_of(const Batch& batch, std::int64_t begin, std::int64_t end);

}  // namespace phalanx
