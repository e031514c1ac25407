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

/// Computes forward and backward as section `train` asks: precision, memory format, batch norm over ranks, checkpointed
/// activations, stages of a pipeline, a graph of the device, replicas in threads, accumulation, virtual shards.
class TrainingStep {
 public:
  /// The parts of a step. All that are passed by reference or pointer must outlive the step.
  struct Setup {
    const TrainConfig& config;
    Model& model;
    Task& task;
    TrainingTurns& turns;
    const Mesh& mesh;                    // of the run
    std::function<double()> loss_scale;  // see Arithmetic; null: 1
    StepClock& clock;
    const FlatParameters& parameters;                      // of the model
    UnusedParameters& unused;                              // finds unused parameters in all replicas of the model
    std::function<std::shared_ptr<Model>()> make_replica;  // makes a model of the same kind, with any values
    std::int64_t bucket_bytes = 0;
    Invariant* invariant = nullptr;          // takes the gradients of virtual shards; null: there are none
    std::function<void()> after_backward{};  // see Synchronizer; null: nothing
    const Pipeline* pipeline = nullptr;      // pipeline in which the model is a stage; null: whole model
    std::vector<at::Tensor> lent{};          // parameters that the first tensor rank updates for all
    std::uint64_t seed = 0;                  // of random numbers that are drawn in steps
    c10::Device device{c10::kCPU};           // device of the model
  };

  /// Makes the step. Collective. Throws ConfigError if the config needs something that the model or the samples do not
  /// have. The first step throws it if threads of one process would draw random numbers.
  explicit TrainingStep(const Setup& setup);

  Step& step() { return *steps_.back(); }

  /// Returns the step that counts the operations of the first step. Null on devices other than the CPU, and if threads
  /// share the samples of a rank.
  const CountedStep* counted() const { return counted_; }

  /// Returns the innermost step if the model is a stage of a pipeline; null otherwise.
  const PipelineStep* pipeline() const { return pipeline_; }

  /// Copies the values of parameters that other ranks of this replica update. Collective.
  void lend_parameters() const {
    if (lending_ != nullptr) lending_->shared().lend();
    if (pipeline_ != nullptr) pipeline_->shared().lend();
  }

  /// Prepares for the first step, which has this number. Must be called after a checkpoint was restored. Seeds random
  /// numbers: the ones that belong to rows of the global batch, and LibTorch's generator, with another seed on each
  /// rank.
  void start(std::int64_t step);

 private:
  std::unique_ptr<Step> innermost(const Setup& setup);
  std::unique_ptr<Step> plain(const Setup& setup, Model& model) const;
  void nest(const Setup& setup);  // adds the steps around the innermost one
  void lend(const Setup& setup);
  void share_out(const Setup& setup);
  void divide(const Setup& setup);

  std::vector<std::unique_ptr<Step>> steps_;  // each one runs the one before it
  std::uint64_t seed_;
  StepSeed step_seed_ = std::make_shared<SeedOfStep>();
  int rank_;
  bool threads_;                     // several ranks or replicas train in threads of this process
  VirtualShards* shards_ = nullptr;  // in steps_, like all pointers below; null: none
  TurnStep* turns_ = nullptr;
  PipelineStep* pipeline_ = nullptr;
  LendingStep* lending_ = nullptr;
  CountedStep* counted_ = nullptr;
  RandomStep* random_ = nullptr;  // the outermost
};

}  // namespace phalanx
