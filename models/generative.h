// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// A model that generates samples from noise.
class Generative {
 public:
  virtual ~Generative() = default;

  /// Returns samples [n, ...], shaped like the model's first input, for normal noise [n, k], shaped like the second
  /// input. The model must be in evaluation mode.
  virtual at::Tensor samples(const at::Tensor& noise) = 0;
};

}  // namespace phalanx
