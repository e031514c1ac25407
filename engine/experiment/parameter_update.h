// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint_part.h"
#include "engine/experiment/config.h"
#include "engine/meters/readings.h"
#include "engine/optim/clip.h"
#include "engine/optim/ema.h"
#include "engine/optim/loss_scale.h"
#include "engine/sync/synchronizer.h"
#include "engine/watch/watching.h"
#include "framework/comm/mesh.h"

namespace phalanx {

/// An optimizer with the wrappers that section `train` asks for, from the inside out: clipping, loss scaling, averages.
/// The guard against values that are not finite sees what the optimizer sees; the clock measures everything.
class ParameterUpdate {
 public:
  /// Synchronizer and watching must outlive it. Clipping uses the norm of the whole model's gradients: `norm` has one
  /// sum for the parameters that the ranks of Mesh::model() hold and, if ranks have experts of their own, a second one
  /// for these. All ranks of the mesh agree on whether gradients are finite. `device`: of the parameters.
  /// `unused` returns the parameters that an update leaves as they are, and is called before each one, even if the
  /// update is skipped then.
  ParameterUpdate(const ExperimentConfig& config, std::unique_ptr<Optimizer> optimizer, Synchronizer& synchronizer,
                  const Mesh& mesh, Clip::Parts norm, Watching& watching, c10::Device device,
                  std::function<std::set<std::string>()> unused);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

  /// Returns the factor of losses; null: there is none.
  std::function<double()> loss_scale() const;

  /// Calls `body` while the parameters hold their averages, if the config asks for averages. Collective.
  void with_averages(const std::function<void()>& body);

  /// Returns readings of the last update, for metrics: gradient_norm before clipping, if there is a limit; loss_scale
  /// and updates_left_out, if there is a loss scale.
  Readings readings() const;

  /// For checkpoints, beside the optimizer's state.
  std::vector<CheckpointPart> parts();

 private:
  Clip* clip_ = nullptr;  // these are in optimizer_; null: none
  LossScale* scale_ = nullptr;
  Ema* averages_ = nullptr;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace phalanx
