// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// Throws ConfigError if batch norm in training has one value per channel, whose variance is undefined, as PyTorch
/// does. `values`: number of values per channel, over all ranks that share the statistics; `input`: this rank's input,
/// for the message.
void require_variance(double values, const at::Tensor& input);

/// Does the same for statistics over only `input`, [n, C, ...].
void require_variance(const at::Tensor& input);

}  // namespace phalanx
