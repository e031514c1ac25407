#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "framework/base/registry.h"

namespace phalanx {

/// What training makes small.
class Loss {
 public:
  virtual ~Loss() = default;
  virtual at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const = 0;  // [n, ...], [n, ...] -> []
};

using Losses = Registry<std::unique_ptr<Loss>()>;

}  // namespace phalanx
