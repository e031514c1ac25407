// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "engine/build/replica_strategy.h"
#include "engine/build/updaters.h"
#include "engine/checkpoint/checkpoint_part.h"
#include "engine/config/train_config.h"
#include "engine/hooks/watching/watching.h"
#include "engine/optim/clip.h"
#include "engine/optim/ema.h"
#include "engine/optim/loss_scale.h"
#include "framework/base/metrics.h"

namespace phalanx {

/// An optimizer with the wrappers that section `train` asks for, from the inside out: clipping, loss scaling, averages.
/// The guard against values that are not finite sees the same gradients as the optimizer. The clock measures all of
/// them.
class ParameterUpdate {
 public:
  /// `watching`, the part that `updaters` refers to, and everything that `replica_strategy` points to
  /// must outlive the object.
  ///
  /// Clipping uses the norm of the whole model's gradients (Updaters::parts_of_norm()). All ranks of the mesh agree
  /// whether gradients are finite. Before each update, even if it is then skipped, the ranks that make the same update
  /// agree on the parameters that it does not change (UnusedParameters).
  ParameterUpdate(const TrainConfig& config, std::unique_ptr<Optimizer> optimizer, const Updaters& updaters,
                  const ReplicaStrategy& replica_strategy, Watching& watching);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

  /// Returns the loss scale, which updates change in place: [] float32, on the model's device. Undefined without loss
  /// scaling.
  at::Tensor loss_scale() const;

  /// Calls `body` while the parameters hold their averages, if the config asks for averages. Collective.
  void with_averages(const std::function<void()>& body);

  /// Returns the metrics of the last update: gradient_norm before clipping, if the norm is limited;
  /// loss_scale and skipped_updates, if there is a loss scale.
  Metrics metrics() const;

  /// Returns the parts of a checkpoint that the wrappers need in addition to the optimizer's state.
  std::vector<CheckpointPart> parts();

 private:
  Clip* clip_ = nullptr;  // inside optimizer_, like the next two; null: none
  LossScale* scale_ = nullptr;
  Ema* averages_ = nullptr;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace phalanx
