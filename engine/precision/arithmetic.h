// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

namespace phalanx {

/// The arithmetic of a step. Parameters, gradients, optimizer state and the loss are float64 with kDouble, and float32
/// otherwise.
struct Arithmetic {
  /// The dtype of matrix products and convolutions: kFloat, kBFloat16 or kHalf; kDouble: the dtype of everything.
  c10::ScalarType dtype = c10::ScalarType::Float;

  /// The memory layout of images, [n, c, h, w], which layers preserve.
  c10::MemoryFormat images = c10::MemoryFormat::Contiguous;

  /// The factor for the loss before backward, which keeps fp16 gradients from vanishing: [] float32, on the model's
  /// device. It is changed in place between steps. Gradients are multiplied by it, but the Result's loss is not. If
  /// undefined, the factor is 1.
  at::Tensor loss_scale{};
};

}  // namespace phalanx
