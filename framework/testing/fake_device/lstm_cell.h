// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace phalanx::testing {

/// One step of an LSTM, which LibTorch implements for GPUs only (_thnn_fused_lstm_cell). Takes gates [n, 4 h] without
/// their biases [4 h], and cx [n, h]. Returns hy, cy, and the gates as needed by backward.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx,
                                                         const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& hidden_bias);

/// The backward of lstm_cell() (_thnn_fused_lstm_cell_backward_impl). Returns the gradients of the gates, of cx and of
/// the biases, which are equal.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const std::optional<at::Tensor>& grad_hy,
                                                                  const std::optional<at::Tensor>& grad_cy,
                                                                  const at::Tensor& cx, const at::Tensor& cy,
                                                                  const at::Tensor& gates, bool has_bias);

}  // namespace phalanx::testing
