// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Throws ConfigError if batch norm in training has one value per channel, whose variance is undefined, as PyTorch
/// does. `values`: per channel, over all ranks that share the statistics; `input`: of this rank, for the message.
void require_variance(double values, const at::Tensor& input);

/// The same for statistics of `input` alone, [n, C, ...].
void require_variance(const at::Tensor& input);

}  // namespace phalanx
