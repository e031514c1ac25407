// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "framework/base/registry.h"
#include "framework/base/state_dict.h"
#include "framework/ps/element_ranges.h"

namespace phalanx::ps {

/// What a rule is told of an update beside its values.
struct UpdateInfo {
  int client = 0;              // who sent it
  std::int64_t staleness = 0;  // updates of others applied since the values from which it was computed were read
  std::int64_t clock = 0;      // of the client
  double scale = 1;            // as the client asked for; a rule that has a learning rate multiplies it
  ElementRanges unused{};      // elements without an update; it is 0 there
};

/// How an update changes the values of a shard. Whatever a rule remembers is sharded like the values. A rule belongs
/// to one shard and is called by one thread.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// The shard's values [n], before the first update; allocates the state. Throws ConfigError for a dtype that the rule
  /// cannot work with.
  virtual void attach(const at::Tensor& values) = 0;

  /// Changes the values by an `update` of the same size and dtype, which is only read. A rule whose
  /// updates are gradients changes neither the values nor its state in UpdateInfo::unused.
  virtual void apply(const at::Tensor& update, const UpdateInfo& info) = 0;

  /// A client has read the values as they are now.
  virtual void read_by(int client) = 0;

  /// For checkpoints.
  virtual StateDict state() = 0;
};

/// A rule that remembers nothing but the values.
class StatelessRule : public UpdateRule {
 public:
  void attach(const at::Tensor& values) override { values_ = values; }
  void read_by(int) final {}
  StateDict state() final { return {}; }

 protected:
  at::Tensor values_;
};

/// Rules by name. One's own is a file with a class and its registration; tables name it like any other.
using UpdateRules = Registry<std::unique_ptr<UpdateRule>()>;

}  // namespace phalanx::ps
