#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/decorator.h"

namespace phalanx {

/// An optimizer that leaves parameters without a gradient as they are, values and state, as PyTorch's optimizers do
/// with a grad of None. A gradient of zeros is a gradient: weight decay and momentum move such a parameter. What is
/// left out is kept in a copy during the update; where every parameter has a gradient, nothing is copied.
class LeaveUnused final : public OptimizerDecorator {
 public:
  /// The names of the parameters to leave out of this update, the same on all ranks that have them.
  using Unused = std::function<std::set<std::string>()>;

  LeaveUnused(std::unique_ptr<Optimizer> inner, Unused unused)
      : OptimizerDecorator(std::move(inner)), unused_(std::move(unused)) {}

  void update() override;

 private:
  // The values and the state of the parameters, as views.
  std::vector<at::Tensor> tensors_of(const std::set<std::string>& parameters);

  Unused unused_;
};

}  // namespace phalanx
