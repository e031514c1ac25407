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

/// Ends a run whose numbers are none any more, on all ranks after the same step, with the name of the tensor that was
/// the first: a loss, else a gradient as it reaches the optimizer, else a parameter.
///
/// Every loss is looked at, so its first step is known exactly, but only in every n-th step, all losses since the last
/// look at once: until then they stay on their device, and nobody waits for it. So are gradients and parameters of that
/// step, which cost a pass over memory each. Then the ranks vote: a small all-reduce, read one step later, so that
/// nobody waits. At the end of a run parameters are looked at once more.
class NanGuard {
 public:
  /// 0 steps: looks at nothing.
  NanGuard(std::int64_t every_steps, CommunicatorPtr group);

  /// The optimizer, with a look at its slices before and after an update. It is the one that changes parameters: what
  /// scales losses, clips or skips updates lies around it. This must outlive it.
  std::unique_ptr<Optimizer> guard(std::unique_ptr<Optimizer> inner);

  /// Hooks, which throw Error on all ranks alike.
  void attach(Engine& engine);

  /// Looks at the parameters as they are, and asks all ranks whether one has found something, also since the last vote:
  /// throws Error on all alike. Before what must not be kept of a run that has diverged. Collective; while training.
  void check_now();

 private:
  class GuardedUpdate;
  enum class Kind : std::int64_t { kLoss, kGradient, kParameter };
  struct Finding {
    std::int64_t step = 0;  // numbered from 1
    Kind kind = Kind::kLoss;
    std::string name{};  // of the parameter
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
  std::int64_t step_ = 0;                      // that is under way, or the last one
  bool due_ = false;                           // to look at gradients and parameters of it
  std::vector<at::Tensor> losses_;             // not looked at yet
  std::vector<std::int64_t> steps_of_losses_;  // in order; a step of several turns has several losses
  std::optional<Finding> finding_;
  GuardedUpdate* update_ = nullptr;  // whoever called guard() owns it
  at::Tensor ballot_;                // [1] int64: whether a rank has found something
  Work pending_;
};

}  // namespace phalanx
