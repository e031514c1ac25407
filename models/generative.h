// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// A model that makes samples of noise.
class Generative {
 public:
  virtual ~Generative() = default;

  /// noise [n, k] of its second input's k, normal -> [n, ...] like its first input. In evaluation mode.
  virtual at::Tensor samples(const at::Tensor& noise) = 0;
};

}  // namespace phalanx
