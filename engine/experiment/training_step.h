// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/experiment/pipeline.h"
#include "engine/experiment/train_config.h"
#include "engine/experiment/training_turns.h"
#include "engine/precision/arithmetic.h"
#include "engine/step/counted_step.h"
#include "engine/step/lending_step.h"
#include "engine/step/pipeline_step.h"
#include "engine/step/random_step.h"
#include "engine/step/turn_step.h"
#include "engine/step/virtual_shards.h"
#include "engine/sync/invariant.h"
#include "engine/sync/unused_parameters.h"
#include "engine/task/task.h"
#include "engine/watch/step_clock.h"
#include "framework/base/batch.h"
#include "framework/comm/mesh.h"
#include "framework/parallel/flat_parameters.h"
#include "framework/parallel/step.h"
#include "models/model.h"

namespace phalanx {

/// Returns the arithmetic of a step as section `train` asks for it, without the scale of the loss. Throws ConfigError
/// if it asks for a memory format of images and the model takes no images.
Arithmetic arithmetic_of(const TrainConfig& config, const ModelSpec& model);

/// Forward and backward as section `train` says: precision, memory format, batch norm over ranks, checkpointed
/// activations, stages of a pipeline, a graph of the device, replicas in threads, accumulation, virtual shards.
class TrainingStep {
 public:
  /// The parts of a step. All that are not values must outlive it.
  struct Setup {
    const TrainConfig& config;
    Model& model;
    Task& task;
    TrainingTurns& turns;
    const Mesh& mesh;                    // of the run
    std::function<double()> loss_scale;  // see Arithmetic; null: 1
    StepClock& clock;
    const FlatParameters& parameters;                      // of the model
    UnusedParameters& unused;                              // which looks at all replicas of the model
    std::function<std::shared_ptr<Model>()> make_replica;  // another model like it, with any values
    std::int64_t bucket_bytes = 0;
    Invariant* invariant = nullptr;          // takes the gradients of virtual shards; null: there are none
    std::function<void()> after_backward{};  // see Synchronizer; null: nothing
    const Pipeline* pipeline = nullptr;      // that the model is a part of; null: it is whole
    std::vector<at::Tensor> lent{};          // parameters that the first tensor rank updates for all
    std::uint64_t seed = 0;                  // of random numbers that are drawn in steps
    c10::Device device{c10::kCPU};           // where the model is
  };

  /// Collective. Throws ConfigError where the config asks for what model or samples do not have; so does the first step
  /// where threads of one process would draw random numbers.
  explicit TrainingStep(const Setup& setup);

  Step& step() { return *steps_.back(); }

  /// Counts the operations of the first step; null on other devices than the CPU, and if threads share the samples of a
  /// rank.
  const CountedStep* counted() const { return counted_; }

  /// The one inside of the others; null: the model is whole.
  const PipelineStep* pipeline() const { return pipeline_; }

  /// Gives this rank the values of parameters that others of its replica update for it. Collective.
  void lend_parameters() const {
    if (lending_ != nullptr) lending_->shared().lend();
    if (pipeline_ != nullptr) pipeline_->shared().lend();
  }

  /// Before the first step, which is that of this number; after a checkpoint was restored. Random numbers begin here:
  /// those that belong to the rows of the global batch, and those of LibTorch's generator, each rank's with others.
  void start(std::int64_t step);

 private:
  std::unique_ptr<Step> innermost(const Setup& setup);
  std::unique_ptr<Step> plain(const Setup& setup, Model& model) const;
  void nest(const Setup& setup);  // the steps around the plain one
  void lend(const Setup& setup);
  void share_out(const Setup& setup);
  void divide(const Setup& setup);

  std::vector<std::unique_ptr<Step>> steps_;  // each around the one before
  std::uint64_t seed_;
  StepSeed step_seed_ = std::make_shared<SeedOfStep>();
  int rank_;
  bool threads_;                     // train beside each other in this process
  VirtualShards* shards_ = nullptr;  // one of them, if any; so is this
  TurnStep* turns_ = nullptr;
  PipelineStep* pipeline_ = nullptr;
  LendingStep* lending_ = nullptr;
  CountedStep* counted_ = nullptr;
  RandomStep* random_ = nullptr;  // the outermost
};

}  // namespace phalanx
