// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "framework/base/registry.h"
#include "framework/ps/update_rule.h"

namespace phalanx::ps {

/// How an update changes a row of a sparse table. What a rule remembers of a row lies beside its values, begins as
/// zeros when the row is created, and goes when the row is evicted. Rules have no other state, so that a row's values
/// depend on the updates of this row alone.
class RowRule {
 public:
  virtual ~RowRule() = default;

  /// Numbers remembered of each row.
  virtual std::int64_t state_size(std::int64_t dim) const = 0;

  /// `update` has as many elements as `values`, and `state` has state_size() numbers.
  virtual void apply(std::span<float> values, std::span<float> state, const float* update,
                     const UpdateInfo& info) const = 0;
};

/// Rules by name. One's own is a file with a class and its registration; sparse tables name it like any other.
using RowRules = Registry<std::unique_ptr<RowRule>()>;

}  // namespace phalanx::ps
