// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "framework/base/registry.h"
#include "framework/parallel/class_parts.h"

namespace phalanx {

/// A loss function to minimise.
class Loss {
 public:
  virtual ~Loss() = default;

  /// [n, ...], [n, ...] -> [], of the predictions' dtype: the mean over all targets that are not ignored (kIgnored);
  /// there is at least one. Throws c10::Error where the shapes do not go together.
  virtual at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const = 0;

  /// The same of an output whose last dimension has scores of classes that ranks divide: the mean() of all of them, on
  /// each of these ranks. Gathers them unless a loss can do without. Collective.
  virtual at::Tensor mean_of_parts(const at::Tensor& part, const ClassParts& parts, const at::Tensor& target) const {
    return mean(gather_scores(part, parts), target);
  }
};

/// Losses by name; "auto" makes none: the task takes its own.
using Losses = Registry<std::shared_ptr<const Loss>()>;

}  // namespace phalanx
