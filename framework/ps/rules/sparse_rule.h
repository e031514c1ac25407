// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "framework/base/registry.h"
#include "framework/ps/rules/update_rule.h"

namespace phalanx::ps {

/// Defines how an update changes a row of a sparse table. The state that a rule keeps for a row is stored next to the
/// row's values. It is zero when the row is created, and is lost when the row is evicted. A rule has no other state, so
/// a row's values depend on the updates of this row only.
class RowRule {
 public:
  virtual ~RowRule() = default;

  /// Returns the number of floats of state per row.
  virtual std::int64_t state_size(std::int64_t dim) const = 0;

  /// Applies an update. `update` has as many elements as `values`, and `state` has state_size() elements.
  virtual void apply(std::span<float> values, std::span<float> state, const float* update,
                     const UpdateInfo& info) const = 0;
};

/// Rules by name. To add one, write a file with a class and its registration; sparse tables can then name it.
using RowRules = Registry<std::unique_ptr<RowRule>()>;

}  // namespace phalanx::ps
