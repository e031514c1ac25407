// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/sync/parameter_hooks.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// Says during backward when all gradients of a bucket have come. One backward gives a parameter its gradient at most
/// once, however often the model uses it (but not both inside and outside of what is computed again: std::logic_error),
/// so a bucket is ready after `backwards` gradients of each of its parameters that require one (now, not later); one
/// with a parameter that the loss does not depend on is never ready, and with `backwards` 0 none is.
///
/// Called in the threads that run backward: one for parameters on the CPU.
class GradientHooks {
 public:
  using Ready = std::function<void(std::size_t bucket)>;

  GradientHooks(const FlatParameters& parameters, std::int64_t backwards, Ready ready);

  /// Begins to count anew: before the first backward of a step.
  void start();

 private:
  void arrived(std::size_t bucket);

  std::vector<std::int64_t> sizes_;  // parameters with gradients, by bucket
  std::int64_t backwards_;
  Ready ready_;
  std::vector<std::int64_t> missing_;  // gradients, by bucket
  ParameterHooks hooks_;
};

}  // namespace phalanx
