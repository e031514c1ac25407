// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

namespace phalanx {

/// A model that adds a term to the loss, such as the balance loss of experts.
class AuxiliaryLoss {
 public:
  virtual ~AuxiliaryLoss() = default;

  /// Returns the term that the last forward in training adds, as the mean over this rank's samples, with its gradient,
  /// or an undefined tensor if it adds none. If ranks divide the positions of a sample, the result is this rank's part
  /// of that mean.
  virtual at::Tensor take_auxiliary_loss() = 0;
};

}  // namespace phalanx
