// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// Calls a function in backward after the gradient of a parameter has been accumulated, once for each backward that
/// involves the parameter. A gradient that a layer accumulates into grad itself also counts, because the parameter's
/// node in the autograd graph runs in that case too. Parameters that require no gradient at construction are skipped.
///
/// The function runs in the threads that run backward, a single thread for parameters on the CPU.
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
