// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/fake_device/lstm_cell.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/zeros_like.h>

#include "framework/testing/fake_device/tf32.h"

namespace phalanx::testing {
namespace {

bool is_there(const std::optional<at::Tensor>& tensor) { return tensor && tensor->defined(); }

}  // namespace

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates,
                                                         const at::Tensor& cx,
                                                         const std::optional<at::Tensor>& input_bias,
                                                         const std::optional<at::Tensor>& hidden_bias) {
  // A GPU would round the factors of the products of which these are the results.
  const auto product = [&](const at::Tensor& gates) {
    return rounds_to_tf32("lstm_cell") ? rounded_to_tf32(gates.to(at::kCPU)).to(gates.device()) : gates;
  };
  at::Tensor sum = product(input_gates) + product(hidden_gates);
  if (is_there(input_bias)) sum = sum + *input_bias;
  if (is_there(hidden_bias)) sum = sum + *hidden_bias;
  const auto parts = sum.chunk(4, 1);
  const at::Tensor in = parts[0].sigmoid(), forget = parts[1].sigmoid(), cell = parts[2].tanh(),
                   out = parts[3].sigmoid();
  const at::Tensor cy = forget * cx + in * cell;
  return {out * cy.tanh(), cy, at::concat({in, forget, cell, out}, 1)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell_backward(const std::optional<at::Tensor>& grad_hy,
                                                                  const std::optional<at::Tensor>& grad_cy,
                                                                  const at::Tensor& cx, const at::Tensor& cy,
                                                                  const at::Tensor& gates, bool has_bias) {
  const auto parts = gates.chunk(4, 1);
  const at::Tensor &in = parts[0], &forget = parts[1], &cell = parts[2], &out = parts[3];
  const at::Tensor squashed = cy.tanh(), hy = is_there(grad_hy) ? *grad_hy : at::zeros_like(cy);
  at::Tensor state = hy * out * (1 - squashed * squashed);
  if (is_there(grad_cy)) state = state + *grad_cy;
  const at::Tensor all = at::concat({state * cell * in * (1 - in), state * cx * forget * (1 - forget),
                                     state * in * (1 - cell * cell), hy * squashed * out * (1 - out)},
                                    1);
  return {all, state * forget, has_bias ? all.sum(0) : at::Tensor()};
}

}  // namespace phalanx::testing
