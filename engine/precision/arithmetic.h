// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/MemoryFormat.h>
#include <c10/core/ScalarType.h>

#include <functional>

namespace phalanx {

/// How a step computes. Parameters, gradients, what the optimizer remembers and the loss are float64 with kDouble, else
/// float32.
struct Arithmetic {
  /// What matrix products and convolutions compute with: kFloat, kBFloat16 or kHalf; kDouble: what everything does.
  c10::ScalarType dtype = c10::ScalarType::Float;

  /// How images, [n, c, h, w], lie in memory; layers keep it up.
  c10::MemoryFormat images = c10::MemoryFormat::Contiguous;

  /// What the loss is multiplied with before backward, so that fp16 gradients do not vanish; asked in every step,
  /// before backward. Gradients come out multiplied with it, the Result's loss does not. Null: 1.
  std::function<double()> loss_scale{};
};

}  // namespace phalanx
