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
/// The guard against values that are not finite sees the same gradients as the optimizer. The clock measures all of
/// them.
class ParameterUpdate {
 public:
  /// The synchronizer and `watching` must outlive the object.
  ///
  /// Clipping uses the norm of the whole model's gradients. `norm` has one sum for the parameters that the ranks of
  /// Mesh::model() hold and, if the experts are divided between ranks, a second one for experts. All ranks of the mesh
  /// agree whether gradients are finite.
  ///
  /// `device`: the device of the parameters. `unused` returns the parameters that an update does not change. It is
  /// called before each update, even if the update is then skipped.
  ParameterUpdate(const ExperimentConfig& config, std::unique_ptr<Optimizer> optimizer, Synchronizer& synchronizer,
                  const Mesh& mesh, Clip::Parts norm, Watching& watching, c10::Device device,
                  std::function<std::set<std::string>()> unused);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

  /// Returns a function that gives the loss scale; null if there is none.
  std::function<double()> loss_scale() const;

  /// Calls `body` while the parameters hold their averages, if the config asks for averages. Collective.
  void with_averages(const std::function<void()>& body);

  /// Returns readings of the last update, for metrics: gradient_norm before clipping, if the norm is limited;
  /// loss_scale and updates_left_out, if there is a loss scale.
  Readings readings() const;

  /// Returns the parts of a checkpoint that the wrappers need in addition to the optimizer's state.
  std::vector<CheckpointPart> parts();

 private:
  Clip* clip_ = nullptr;  // inside optimizer_, like the next two; null: none
  LossScale* scale_ = nullptr;
  Ema* averages_ = nullptr;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace phalanx
