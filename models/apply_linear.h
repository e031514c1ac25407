// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// The layout of a linear layer's weight: [out, in] as in torch::nn::Linear, or [in, out] as in Hugging Face's Conv1D.
enum class WeightLayout { kOutIn, kInOut };

/// Returns input [..., in] times a weight plus `bias` [out], if it is defined, as [..., out]. It computes the same as
/// at::linear, up to rounding, but is faster for float32 on the CPU. oneDNN computes the products of the forward pass
/// and of the input's gradient. On devices, a layer [out, in] of 4096 outputs or more with 16 bits is computed with a
/// multiple of 64 outputs, since other products are several times slower there; the result is a view of their first
/// `out` columns.
///
/// If the weight is a parameter that already has a gradient, the product that is the weight's gradient is added
/// directly into grad, without a temporary. Users of the gradient itself (a hook on the parameter, autograd::grad, a
/// second derivative) still get it from autograd. The parameter's node (grad_accumulator) runs in any case, after grad
/// is complete. Two backward passes must not use the same parameter at the same time. The addition may be deferred
/// (DeferGradients), on any device and with any dtype, if the caller announces that (ExpectDeferral).
at::Tensor apply_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                        WeightLayout layout = WeightLayout::kOutIn);

}  // namespace phalanx
