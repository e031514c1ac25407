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

/// An optimizer, and what section `train` puts around it, from inside: clipping, loss scaling, averages. The guard
/// against numbers that are none sees what the optimizer sees, the clock sees all of it.
class ParameterUpdate {
 public:
  /// Synchronizer and watching must outlive it. The norm of the gradients is that of the whole model, whatever ranks
  /// have it: `norm` has one sum of what the ranks of Mesh::model() have, and, where ranks have experts of their own,
  /// one of these. On gradients that are not finite all ranks of the mesh agree. `device`: where parameters are.
  /// `unused` returns the parameters that an update leaves as they are, and is called before each one, even if that is
  /// skipped then.
  ParameterUpdate(const ExperimentConfig& config, std::unique_ptr<Optimizer> optimizer, Synchronizer& synchronizer,
                  const Mesh& mesh, Clip::Parts norm, Watching& watching, c10::Device device,
                  std::function<std::set<std::string>()> unused);

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }

  /// What losses are multiplied with; null: nothing.
  std::function<double()> loss_scale() const;

  /// Calls `body` while the parameters hold their averages, where the config asks for some. Collective.
  void with_averages(const std::function<void()>& body);

  /// Of the last update, for metrics: gradient_norm before it was clipped, where there is a limit; loss_scale and
  /// updates_left_out, where there is one.
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
