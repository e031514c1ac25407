// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace phalanx::testing {

/// What LibTorch has for GPUs alone (_thnn_fused_lstm_cell): one step of an LSTM. Gates [n, 4 h] without their biases
/// [4 h], cx [n, h] -> hy, cy, and the gates as backward needs them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx,
                                                         const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& hidden_bias);

/// Its backward (_thnn_fused_lstm_cell_backward_impl): the gradients of the gates, of cx and of either bias.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const std::optional<at::Tensor>& grad_hy,
                                                                  const std::optional<at::Tensor>& grad_cy,
                                                                  const at::Tensor& cx, const at::Tensor& cy,
                                                                  const at::Tensor& gates, bool has_bias);

}  // namespace phalanx::testing
