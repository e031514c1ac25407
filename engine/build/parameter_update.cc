// SPDX-License-Identifier: Apache-2.0
#include "engine/build/parameter_update.h"

#include <string>
#include <utility>

#include "engine/checkpoint/numbers_part.h"
#include "engine/hooks/watching/timed.h"
#include "engine/optim/decorator.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

template <class Decorator>
std::unique_ptr<Optimizer> remember(std::unique_ptr<Decorator> decorator, Decorator*& as) {
  as = decorator.get();
  return decorator;
}

// Before each update, ranks that make the same update agree on the parameters that it does not change. This wrapper is
// outside of the timed update, so that its time counts as communication.
class UpdateOfUsed final : public OptimizerDecorator {
 public:
  UpdateOfUsed(std::unique_ptr<Optimizer> inner, Strategy& strategy, UnusedParameters& unused)
      : OptimizerDecorator(std::move(inner)), strategy_(strategy), unused_(unused) {}

  void update() override {
    unused_.agree(strategy_.gradient_groups());
    inner().exclude(unused_.names());
    inner().update();
  }

  std::string why_not_recorded() const override {
    if (!unused_.all_used_here()) return "the loss does not depend on all parameters, and the ranks agree on these";
    return inner().why_not_recorded();
  }

  // This rank had used all parameters in the step before the recording.
  void replayed() override {
    unused_.agree(strategy_.gradient_groups());
    if (const auto& names = unused_.names(); !names.empty()) {
      throw ConfigError("train.cuda_graph: the loss of the recorded step does not depend on " + *names.begin() +
                        ", on which that of the step before does; remove it");
    }
    inner().replayed();
  }

 private:
  Strategy& strategy_;
  UnusedParameters& unused_;
};

// Returns the function by which Clip turns the sums of this rank's slices into sums over the whole model.
SumOverSlices sum_over_model(const Mesh& mesh, Strategy& strategy) {
  return [&strategy, model = mesh.model(), along = mesh.along(Axis::kExpert)](at::Tensor& sums) {
    strategy.sum_over_slices(sums);
    if (model->size() > 1) model->all_reduce(sums, Reduction::kSum).wait();
    if (sums.numel() > 1) along->all_reduce(sums.narrow(0, 1, 1), Reduction::kSum).wait();
  };
}

}  // namespace

ParameterUpdate::ParameterUpdate(const TrainConfig& config, std::unique_ptr<Optimizer> optimizer,
                                 const Updaters& updaters, const ReplicaStrategy& replica_strategy, Watching& watching)
    : optimizer_(watching.nan_guard().guard(std::move(optimizer))) {
  const PartitionedModel& part = updaters.part();
  Strategy& strategy = *replica_strategy.strategy;
  if (config.clip_norm > 0 || config.clip_value > 0) {
    const ClipLimits limits{.norm = config.clip_norm, .value = config.clip_value};
    const auto sum = timed(sum_over_model(part.mesh, strategy), watching.clock());
    optimizer_ = remember(
        std::make_unique<Clip>(std::move(optimizer_), limits, sum, updaters.parts_of_norm(), part.device), clip_);
  }
  if (config.precision == "fp16") {
    // All ranks decide together, and not only those with slices of one replica: replicas that have diverged must skip
    // the same updates, too.
    const auto largest = timed(
        [all = part.mesh.world()](at::Tensor& own) { all->all_reduce(own, Reduction::kMax).wait(); }, watching.clock());
    optimizer_ =
        remember(std::make_unique<LossScale>(std::move(optimizer_), config.loss_scale, largest, part.device), scale_);
  }
  if (config.ema_decay > 0) {
    const auto share = [&strategy] { strategy.gather_slices(); };
    optimizer_ = remember(std::make_unique<Ema>(std::move(optimizer_), config.ema_decay, share), averages_);
  }
  optimizer_ = std::make_unique<TimedUpdate>(std::move(optimizer_), watching.clock());
  optimizer_ = std::make_unique<UpdateOfUsed>(std::move(optimizer_), strategy, *replica_strategy.unused);
  optimizer_ = watching.digests().watch(std::move(optimizer_));
}

at::Tensor ParameterUpdate::loss_scale() const { return scale_ == nullptr ? at::Tensor() : scale_->scale_on_device(); }

void ParameterUpdate::with_averages(const std::function<void()>& body) {
  if (averages_ == nullptr) return body();
  averages_->with_averages(body);
}

Metrics ParameterUpdate::metrics() const {
  Metrics metrics;
  if (clip_ != nullptr && clip_->limits().norm > 0) metrics.emplace_back("gradient_norm", clip_->norm());
  if (scale_ != nullptr) {
    metrics.emplace_back("loss_scale", scale_->scale());
    metrics.emplace_back("skipped_updates", static_cast<double>(scale_->skipped_updates()));
  }
  return metrics;
}

// Loads nothing if the checkpoint is of a run without the wrapper.
std::vector<CheckpointPart> ParameterUpdate::parts() {
  std::vector<CheckpointPart> parts;
  if (clip_ != nullptr) {
    parts.push_back(numbers_part(
        "clip", [clip = clip_] { return std::vector<double>{clip->norm()}; },
        [clip = clip_](const std::vector<double>& norm) {
          if (!norm.empty()) clip->set_norm(norm[0]);
        }));
  }
  if (scale_ != nullptr) {
    parts.push_back(numbers_part(
        "loss_scale", [scale = scale_] { return scale->progress(); },
        [scale = scale_](const std::vector<double>& progress) {
          if (!progress.empty()) scale->set_progress(progress);
        }));
  }
  return parts;
}

}  // namespace phalanx
