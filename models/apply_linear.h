// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// The layout of a linear layer's weight: that of torch::nn::Linear, or that of Hugging Face's Conv1D.
enum class WeightLayout { kOutIn, kInOut };

/// input [..., in] times a weight, plus bias [out] where it is defined -> [..., out]: at::linear, to the rounding, but
/// in float32 on the CPU it takes less time. oneDNN makes the products of forward and those with the input's gradient,
/// and the product that is a parameter's gradient is added right where the parameter's grad lies, if it has one: it is
/// not written elsewhere first and then added. Who wants the gradient itself gets it from autograd as ever: a hook on
/// the parameter, autograd::grad, a derivative of it. The parameter's node (grad_accumulator) runs in any case, once
/// grad is complete. So a parameter is not for two backwards at a time. The sum may be put off (DeferGradients), on any
/// device and with any dtype where that is expected (ExpectDeferral).
at::Tensor apply_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                        WeightLayout layout = WeightLayout::kOutIn);

}  // namespace phalanx
