// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace phalanx {

/// Logits that chunked_cross_entropy() processes at a time: 128 MiB of float32.
inline constexpr std::int64_t kCrossEntropyChunk = std::int64_t{1} << 25;

/// Returns the mean cross entropy of logits [n, classes] and class numbers int64 [n], except for targets equal to
/// `ignored`. The share `smoothing` of each target is spread over all classes. The value, in float32 or float64, equals
/// at::cross_entropy_loss of the logits in float32 up to rounding, and so does the gradient, in the dtype of the
/// logits. Once differentiable, with a gradient of the loss that is not negative: with a negative one, the logits'
/// gradient is NaN.
///
/// Memory: the logits' gradient, and a few temporaries for as many rows as have `chunk` logits, at least one row. If
/// the logits have padding after their rows (padded_columns.h), so does the gradient. No operator waits for a device.
at::Tensor chunked_cross_entropy(const at::Tensor& logits, const at::Tensor& target, std::int64_t ignored,
                                 double smoothing, std::int64_t chunk = kCrossEntropyChunk);

}  // namespace phalanx
