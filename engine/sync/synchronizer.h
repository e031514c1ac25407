#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/registry.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// What one rank's optimizer updates: a run of parameters with the gradient for it.
struct Slice {
  at::Tensor values;     // [n]
  at::Tensor gradients;  // [n]
};

/// How replicas agree. The engine knows nothing else about distribution.
class Synchronizer {
 public:
  virtual ~Synchronizer() = default;

  /// Makes replicas equal and says what this rank updates from now on. Collective.
  virtual std::vector<Slice> attach(const FlatParameters& parameters) = 0;

  /// After it, the slices' gradients are the agreed ones.
  virtual void before_update(std::int64_t /*step*/) {}

  /// After it, replicas hold what the strategy promises.
  virtual void after_update(std::int64_t /*step*/) {}

  /// After the last step.
  virtual void finish() {}
};

/// Strategies by name; a factory gets the data-parallel group and throws ConfigError where the strategy does not fit
/// it.
using Synchronizers = Registry<std::unique_ptr<Synchronizer>(const CommunicatorPtr&)>;

}  // namespace phalanx
