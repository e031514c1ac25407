#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "framework/base/registry.h"

namespace phalanx {

/// A loss function to minimise.
class Loss {
 public:
  virtual ~Loss() = default;

  /// [n, ...], [n, ...] -> [], of the predictions' dtype: the mean over all targets that are not ignored (kIgnored); there is at least
  /// one. Throws c10::Error where the shapes do not go together.
  virtual at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const = 0;
};

/// Losses by name; "auto" makes none: the task takes its own.
using Losses = Registry<std::shared_ptr<const Loss>()>;

}  // namespace phalanx
