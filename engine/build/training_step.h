// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/build/pipeline.h"
#include "engine/build/training_turns.h"
#include "engine/config/train_config.h"
#include "engine/precision/arithmetic.h"
#include "engine/step/current_step.h"
#include "engine/step/pipeline_step.h"
#include "engine/step/recorded_update.h"
#include "engine/step/shared_parameters.h"
#include "engine/step/step_flop_counter.h"
#include "engine/step/step_with_listeners.h"
#include "engine/strategies/invariant.h"
#include "engine/strategies/unused_parameters.h"
#include "engine/task/task.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/observe/times/step_clock.h"
#include "framework/parallel/step.h"
#include "framework/partition/flat_parameters.h"
#include "models/model.h"

namespace phalanx {

/// Returns the arithmetic of a step as section `train` asks for it, without the scale of the loss. Throws ConfigError
/// if it asks for a memory format of images and the model takes no images.
Arithmetic arithmetic_of(const TrainConfig& config, const ModelSpec& model);

/// Computes forward and backward as section `train` asks: precision, memory format, batch norm over ranks, checkpointed
/// activations, stages of a pipeline, a graph of the device, replicas in threads, accumulation, virtual shards. A graph
/// may contain the update, too.
///
/// Steps and listeners (StepListener) nest as follows. Each line is around the lines below it, and exists only if it is
/// needed.
///
///   once per batch   CurrentStep           number and seed of the step
///                    StepFlopCounter
///                    SharedParameters      that the tensor ranks of a replica share
///                    AlternatingTurns
///                    SharedRandomGuard
///                    PaddingOnlyGuard
///   divides a batch  VirtualShards, or AccumulatedStep around DataParallelStep
///   once per part    TimedStep             of the first replica in threads, like all that follows
///                    AfterBackward         of the strategy
///                    BatchNormRows
///                    SharedParameters      that the stages of a pipeline share
///   computes         CapturedGraphStep around PlainStep, or PipelineStep
///
/// A watcher of the outermost step sees Stage::kBackward after all listeners.
class TrainingStep {
 public:
  /// The model that the step trains. Whatever is passed by reference or pointer, here and below, must outlive the step.
  struct Trained {
    Model& model;
    Task& task;
    TrainingTurns& turns;
    const Pipeline* pipeline = nullptr;  // pipeline in which the model is a stage; null: whole model
    c10::Device device{c10::kCPU};       // device of the model
  };
  /// Callbacks on the gradients that the strategy and the precision require.
  struct Gradients {
    at::Tensor loss_scale{};                         // see Arithmetic; undefined: 1
    std::function<void()> after_backward{};          // see FreesGradients; null: nothing
    Invariant* invariant = nullptr;                  // takes the gradients of virtual shards; null without them
    std::vector<at::Tensor> of_first_tensor_rank{};  // parameters that the first tensor rank updates for all
  };
  /// Inputs for replicas of the model in threads.
  struct ThreadReplicas {
    std::function<std::shared_ptr<Model>()> make;  // makes a model of the same kind, with any values
    const FlatParameters& parameters;              // of the first replica
    std::int64_t bucket_bytes = 0;
    std::int64_t parts = 1;    // of buckets, see FlatModel
    UnusedParameters& unused;  // finds the unused parameters of all replicas
  };
  struct Setup {
    const TrainConfig& config;
    const Mesh& mesh;  // of the run
    Trained trained;
    Gradients gradients;
    ThreadReplicas replicas;
    StepClock& clock;
    std::uint64_t seed = 0;                    // of random numbers that are drawn in steps
    std::shared_ptr<RecordedUpdate> update{};  // see CapturedGraphStep
  };

  /// Makes the step. Collective. Throws ConfigError if the config needs something that the model or the samples do not
  /// have. The first step throws it if threads of one process would draw random numbers.
  explicit TrainingStep(const Setup& setup);

  /// Returns the outermost step.
  Step& step() { return *steps_.back(); }

  /// Returns the counter of the operations of the first step. Null on devices other than the CPU, and if threads share
  /// the samples of a rank.
  const StepFlopCounter* counted() const { return counter_.get(); }

  /// Returns the innermost step if the model is a stage of a pipeline; null otherwise.
  const PipelineStep* pipeline() const { return pipeline_.get(); }

  /// Copies the values of parameters that other ranks of this replica update. Collective.
  void broadcast_from_owners() const;

  /// Prepares for the first step, which has this number. Must be called after a checkpoint was restored. Seeds random
  /// numbers: the ones that belong to rows of the global batch, and LibTorch's generator, with another seed on each
  /// rank.
  void start(std::int64_t step);

 private:
  using Listeners = StepWithListeners::Listeners;

  void add_innermost(const Setup& setup);
  void add_thread_replicas(const Setup& setup);
  void add_virtual_shards(const Setup& setup);
  std::unique_ptr<Step> plain(const Setup& setup, Model& model) const;
  Listeners listeners_of_parts(const Setup& setup);
  Listeners listeners_of_batches(const Setup& setup, bool threads);

  // Puts a step around the outermost one.
  template <class Outer, class... Arguments>
  void nest(Arguments&&... arguments) {
    Step& inner = steps_.empty() ? *pipeline_ : step();
    steps_.push_back(std::make_unique<Outer>(inner, std::forward<Arguments>(arguments)...));
  }

  std::shared_ptr<CurrentStep> current_;
  std::shared_ptr<StepFlopCounter> counter_;               // null: see counted()
  std::vector<std::shared_ptr<SharedParameters>> shared_;  // outermost first
  std::unique_ptr<PipelineStep> pipeline_;                 // null: see pipeline()
  std::vector<std::unique_ptr<Step>> steps_;               // each one runs the one before it; the first runs pipeline_
  std::optional<std::uint64_t> generator_seed_;  // of LibTorch's generator; empty: the generator is not seeded
};

}  // namespace phalanx
