// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "framework/base/registry.h"
#include "framework/base/state_dict.h"
#include "framework/ps/protocol/element_ranges.h"

namespace phalanx::ps {

/// Information about an update that a rule receives in addition to its values.
struct UpdateInfo {
  int client = 0;              // client that sent it
  std::int64_t staleness = 0;  // updates of others applied since the values from which it was computed were read
  std::int64_t clock = 0;      // clock of the client
  double scale = 1;            // requested by the client; a rule with a learning rate multiplies the two
  ElementRanges unused{};      // elements without an update; the update is 0 there
};

/// Defines how an update changes the values of a shard. The state of a rule is sharded like the values. A rule belongs
/// to one shard and is called by one thread.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// Called with the shard's values [n] before the first update; allocates the state. Throws ConfigError for a dtype
  /// that the rule does not support.
  virtual void attach(const at::Tensor& values) = 0;

  /// Changes the values by an `update` of the same size and dtype, which must not be modified. A rule whose updates are
  /// gradients leaves both the values and its state unchanged in UpdateInfo::unused.
  virtual void apply(const at::Tensor& update, const UpdateInfo& info) = 0;

  /// Called when a client has read the current values.
  virtual void read_by(int client) = 0;

  /// Returns the state for checkpoints.
  virtual StateDict state() = 0;
};

/// A rule without state.
class StatelessRule : public UpdateRule {
 public:
  void attach(const at::Tensor& values) override { values_ = values; }
  void read_by(int) final {}
  StateDict state() final { return {}; }

 protected:
  at::Tensor values_;
};

/// Rules by name. To add one, write a file with a class and its registration; tables can then name it.
using UpdateRules = Registry<std::unique_ptr<UpdateRule>()>;

}  // namespace phalanx::ps
