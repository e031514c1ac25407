#pragma once

#include <memory>
#include <vector>

#include "engine/sync/synchronizer.h"
#include "framework/base/registry.h"

namespace phalanx {

/// Updates slices of parameters in place.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  /// What to update from now on; allocates state for these slices only.
  virtual void attach(std::vector<Slice> slices) = 0;

  /// One update with the learning rate set last, which also zeroes the gradients.
  virtual void update() = 0;

  virtual double learning_rate() const = 0;
  virtual void set_learning_rate(double rate) = 0;
};

using Optimizers = Registry<std::unique_ptr<Optimizer>()>;

}  // namespace phalanx
