// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/optim/optimizer.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Ends a run whose numbers are no longer finite, on all ranks after the same step. The error names the tensor in which
/// this happened first: a loss, else a gradient as the optimizer gets it, else a parameter.
///
/// Every loss is checked, so that the first bad step is known exactly. However, all losses since the last check are
/// checked together in every n-th step. Until then they stay on their device, and no thread waits for it. Gradients and
/// parameters are only checked in that step, which costs a pass over memory each; of a step whose update is part of a
/// graph of the device (Optimizer::record), only the parameters. Then the ranks vote by a small
/// all-reduce, which is read one step later, so that no rank waits. At the end of a run parameters are checked again.
class NanGuard {
 public:
  /// Checks nothing if `every_steps` is 0.
  NanGuard(std::int64_t every_steps, CommunicatorPtr group);

  /// Returns the optimizer with checks of its slices before and after an update. It must be the optimizer that changes
  /// parameters: wrappers that scale losses, clip or skip updates must be outside. The guard must outlive it.
  std::unique_ptr<Optimizer> guard(std::unique_ptr<Optimizer> inner);

  /// Adds the hooks, which throw Error on all ranks at the same step, before hooks of other phases see its numbers.
  void attach(Engine& engine);

  /// Checks the current parameters, and asks all ranks whether one of them has found something since the last vote. If
  /// so, throws Error on all ranks. Must be called before data is saved, because data of a diverged run must not be
  /// saved. Collective; only during training.
  void check_now();

 private:
  class GuardedUpdate;
  enum class Kind : std::int64_t { kLoss, kGradient, kParameter };
  struct Finding {
    std::int64_t step = 0;  // counted from 1
    Kind kind = Kind::kLoss;
    std::string name{};  // name of the parameter
  };

  void keep_loss(const State& state);
  void look_at_losses();
  void look_at(const Slice& slice, const at::Tensor& values, Kind kind);
  void look_at_parameters();
  void read_vote();
  void vote();
  [[noreturn]] void fail();

  std::int64_t every_;
  CommunicatorPtr group_;
  std::int64_t step_ = 0;           // current or last step
  bool due_ = false;                // true if gradients and parameters are checked in this step; the same on all ranks
  std::vector<at::Tensor> losses_;  // not checked yet
  std::vector<std::int64_t> steps_of_losses_;  // ascending; a step of several turns has several losses
  std::optional<Finding> finding_;
  GuardedUpdate* update_ = nullptr;  // owned by the caller of guard()
  at::Tensor ballot_;                // [1] int64: 1 if a rank has found something
  Work pending_;
};

}  // namespace phalanx
