// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// Calls a function in backward after the gradient of a parameter has come: once for each backward in which the
/// parameter has a part. A gradient that a layer has added to grad by itself counts like any other: as a run of the
/// parameter's node. Parameters that require no gradient when this is made are left out.
///
/// Called in the threads that run backward: one for parameters on the CPU.
class ParameterHooks {
 public:
  using Arrived = std::function<void(std::size_t bucket, std::size_t parameter)>;

  ParameterHooks(const FlatParameters& parameters, Arrived arrived);
  ~ParameterHooks();
  ParameterHooks(const ParameterHooks&) = delete;
  ParameterHooks& operator=(const ParameterHooks&) = delete;

 private:
  class Hook;
  struct Added;

  Arrived arrived_;
  std::vector<Added> added_;
};

}  // namespace phalanx
