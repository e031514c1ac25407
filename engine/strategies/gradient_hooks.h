// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/strategies/parameter_hooks.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// Reports during backward when all gradients of a bucket are complete. One backward gives a parameter its gradient at
/// most once, however often the model uses it, so a bucket is ready after `backwards` gradients of each parameter that
/// requires one at construction. A bucket with a parameter that the loss does not depend on is never ready. If
/// `backwards` is 0, no bucket is. Gradients that arrive while `*accumulates` is true do not count. A parameter that is
/// used both inside and outside of a recomputed part of the model gets several gradients in one backward, which throws
/// std::logic_error.
///
/// The callback runs in the threads that run backward, a single thread for parameters on the CPU.
class GradientHooks {
 public:
  using Ready = std::function<void(std::size_t bucket)>;

  GradientHooks(const FlatParameters& parameters, std::int64_t backwards, Ready ready,
                std::shared_ptr<const bool> accumulates = nullptr);

  /// Restarts the count. Must be called before the first backward of a step.
  void start();

 private:
  void arrived(std::size_t bucket);

  std::vector<std::int64_t> sizes_;  // number of parameters with gradients, by bucket
  std::int64_t backwards_;
  Ready ready_;
  std::shared_ptr<const bool> accumulates_;  // null: never
  std::vector<std::int64_t> missing_;        // number of gradients still missing, by bucket
  ParameterHooks hooks_;
};

}  // namespace phalanx
