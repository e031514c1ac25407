// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "framework/base/config/visitor.h"

namespace phalanx {

/// The steps in which a rank communicates with parameter servers: every `every`-th step, the first time in step `delay`
/// + `every` (counted from 1). It may request the values that it reads `prefetch` steps earlier, so that they arrive
/// while the rank computes. The schedule depends on the step alone, so all buckets are exchanged in the same step.
struct UpdateSchedule {
  std::int64_t every = 4;
  std::int64_t delay = 0;
  std::int64_t prefetch = 0;

  template <class V>
  void visit(V& v) {
    v("every", every, "steps between exchanges with the servers", config::at_least(1));
    v("delay", delay, "initial steps without the servers", config::at_least(0));
    v("prefetch", prefetch, "steps before an exchange at which its values are requested; less than `every`",
      config::at_least(0));
  }

  /// Returns true if a step, counted from 0, ends with an exchange.
  bool exchanges(std::int64_t step) const { return step >= delay && (step + 1 - delay) % every == 0; }

  /// Returns true if the values of a later exchange are requested at the end of a step.
  bool prefetches(std::int64_t step) const { return prefetch > 0 && exchanges(step + prefetch); }
};

/// Throws ConfigError for a `prefetch` that is not less than `every`.
void check(const UpdateSchedule& schedule);

}  // namespace phalanx
