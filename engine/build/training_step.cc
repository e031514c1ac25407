// SPDX-License-Identifier: Apache-2.0
#include "engine/build/training_step.h"

#include <ATen/Context.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/hooks/watching/timed.h"
#include "engine/step/accumulated_step.h"
#include "engine/step/after_backward.h"
#include "engine/step/alternating_turns.h"
#include "engine/step/batch_norm_rows.h"
#include "engine/step/captured_graph_step.h"
#include "engine/step/data_parallel_step.h"
#include "engine/step/padding_only_guard.h"
#include "engine/step/plain_step.h"
#include "engine/step/shared_random_guard.h"
#include "engine/step/virtual_shards.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/random.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/operations/measured_inputs.h"
#include "framework/comm/texts.h"
#include "framework/parallel/sync_batch_norm.h"
#include "models/activation_checkpointing.h"
#include "models/expert_parallel.h"
#include "models/model.h"
#include "models/synchronized_batch_norm.h"
#include "models/tensor_parallel.h"

namespace phalanx {
namespace {

c10::ScalarType dtype_of(const std::string& precision) {
  if (precision == "bf16") return c10::ScalarType::BFloat16;
  if (precision == "fp64") return c10::ScalarType::Double;
  return precision == "fp16" ? c10::ScalarType::Half : c10::ScalarType::Float;
}

c10::MemoryFormat images_of(const TrainConfig& config, const ModelSpec& model) {
  if (config.memory_format == "contiguous") return c10::MemoryFormat::Contiguous;
  const auto is_image = [](const TensorSpec& input) { return input.shape.size() == 3; };
  if (std::ranges::any_of(model.inputs, is_image)) return c10::MemoryFormat::ChannelsLast;
  throw ConfigError(
      "train.memory_format: channels_last is for images, [channels, height, width], and a sample has none; use"
      " contiguous");
}

CheckpointedSegments segments_of(const TrainConfig& config) {
  return {.count = config.checkpoint_activations, .on_host = config.offload_activations};
}

void checkpoint_activations(Model& model, const TrainConfig& config) {
  if (config.checkpoint_activations == 0) return;
  auto* const checkpointing = as<ActivationCheckpointing>(model);
  if (checkpointing != nullptr && checkpointing->checkpoint_activations(segments_of(config))) return;
  throw ConfigError(
      "train.checkpoint_activations: the model has no blocks to recompute; these models have some, if they have more "
      "than two blocks: " +
      models_with(&ModelTraits::activation_checkpointing));
}

double factor_of(const TrainingStep::Setup& setup) {
  const auto ranks = static_cast<double>(setup.mesh.replicas()->size());  // strategies take the mean of their gradients
  const bool sharded = setup.gradients.invariant != nullptr;
  const auto sharing = sharded ? static_cast<double>(setup.config.virtual_shards) : ranks;
  return setup.config.gradients == "sum" ? sharing * ranks : sharing;
}

Arithmetic scaled_arithmetic_of(const TrainingStep::Setup& setup) {
  Arithmetic arithmetic = arithmetic_of(setup.config, setup.trained.task.model());
  arithmetic.loss_scale = setup.gradients.loss_scale;
  return arithmetic;
}

bool shares_its_process(Communicator& world) {
  const MeasuredInputs measured;
  const auto processes = all_gather_text(host_key() + " " + std::to_string(::getpid()), world);
  return std::ranges::count(processes, processes[static_cast<std::size_t>(world.rank())]) > 1;
}

}  // namespace

Arithmetic arithmetic_of(const TrainConfig& config, const ModelSpec& model) {
  return {.dtype = dtype_of(config.precision), .images = images_of(config, model)};
}

TrainingStep::TrainingStep(const Setup& setup) : current_(std::make_shared<CurrentStep>(setup.seed)) {
  const auto& config = setup.config;
  const auto rank = static_cast<std::uint64_t>(setup.mesh.batch()->rank());
  const bool threads = config.data_parallel > 1 || shares_its_process(*setup.mesh.control());
  const bool sharded = setup.gradients.invariant != nullptr;
  if (rank > 0 && !threads && !sharded) generator_seed_ = mix(setup.seed, rank);

  if (config.offload_activations && setup.trained.device.is_cpu()) {
    log_info() << "train.offload_activations: has no effect on the CPU, whose memory has all activations anyway";
  }
  add_innermost(setup);
  if (auto listeners = listeners_of_parts(setup); !listeners.empty()) nest<StepWithListeners>(std::move(listeners));
  nest<TimedStep>(setup.clock);
  if (config.data_parallel > 1) add_thread_replicas(setup);
  if (config.accumulate > 1) {
    // Ranks that divide experts communicate in each part, so all ranks take the same number of parts.
    const bool reduces = setup.gradients.after_backward != nullptr;
    const bool together = config.sync_batch_norm || reduces || as<ExpertParallel>(setup.trained.model) != nullptr;
    nest<AccumulatedStep>(config.accumulate, together);
  }
  if (sharded) add_virtual_shards(setup);
  nest<StepWithListeners>(listeners_of_batches(setup, threads));
}

void TrainingStep::add_innermost(const Setup& setup) {
  const auto& trained = setup.trained;
  if (trained.pipeline == nullptr) {
    steps_.push_back(plain(setup, trained.model));
  } else {
    checkpoint_activations(trained.model, setup.config);
    auto all = trained.pipeline->setup(trained.model, trained.task, setup.mesh);
    all.factor = factor_of(setup);
    all.arithmetic = scaled_arithmetic_of(setup);
    all.current = current_;
    all.segments = segments_of(setup.config);
    pipeline_ = std::make_unique<PipelineStep>(std::move(all));
  }
  if (!setup.config.cuda_graph) return;
  current_->keep_seed_on(trained.device);
  nest<CapturedGraphStep>(trained.device, CapturedGraphStep::kWarmUp, setup.update, &setup.replicas.unused);
}

std::unique_ptr<Step> TrainingStep::plain(const Setup& setup, Model& model) const {
  checkpoint_activations(model, setup.config);
  auto* const tensor_parallel = as<TensorParallel>(model);
  VocabularyShardPtr parts = tensor_parallel == nullptr ? nullptr : tensor_parallel->keep_logits_sharded();
  return std::make_unique<PlainStep>(model, setup.trained.task,
                                     PlainStep::Options{.factor = factor_of(setup),
                                                        .arithmetic = scaled_arithmetic_of(setup),
                                                        .vocabulary_shard = std::move(parts),
                                                        .current = current_});
}

TrainingStep::Listeners TrainingStep::listeners_of_parts(const Setup& setup) {
  Listeners listeners;
  if (setup.gradients.after_backward)
    listeners.push_back(std::make_shared<AfterBackward>(setup.gradients.after_backward));
  if (setup.config.sync_batch_norm) {
    auto statistics = std::make_shared<BatchStatistics>(BatchStatistics{.group = setup.mesh.batch()});
    auto* const batch_norm = as<SynchronizedBatchNorm>(setup.trained.model);
    if (batch_norm == nullptr || batch_norm->synchronize_batch_norm(statistics) == 0) {
      throw ConfigError("train.sync_batch_norm: the model has no batch norm; remove it");
    }
    listeners.push_back(std::make_shared<BatchNormRows>(std::move(statistics)));
  }
  if (setup.trained.pipeline != nullptr) {
    shared_.push_back(setup.trained.pipeline->shared_parameters(setup.mesh));
    listeners.push_back(shared_.back());
  }
  return listeners;
}

// Parameters that tensor ranks share get their owner's values before a pipeline gives them to later stages.
TrainingStep::Listeners TrainingStep::listeners_of_batches(const Setup& setup, bool threads) {
  const auto& trained = setup.trained;
  Listeners listeners{current_};
  if (trained.device.is_cpu() && setup.config.data_parallel == 1) {
    counter_ = std::make_shared<StepFlopCounter>();
    listeners.push_back(counter_);
  }
  if (const auto& parameters = setup.gradients.of_first_tensor_rank; !parameters.empty()) {
    std::vector<SharedParameters::Group> groups{{.ranks = setup.mesh.along(Axis::kTensor), .parameters = parameters}};
    const auto updates = SharedParameters::Updates::kOwnerWithOwnGradients;
    const auto shared = std::make_shared<SharedParameters>(std::move(groups), updates);
    shared_.insert(shared_.begin(), shared);
    listeners.push_back(shared);
  }
  if (setup.gradients.invariant != nullptr) return listeners;
  if (trained.turns.any()) {
    listeners.push_back(std::make_shared<AlternatingTurns>(trained.task, trained.turns.parameters(trained.model),
                                                           current_, trained.turns.current()));
  }
  if (threads) listeners.push_back(std::make_shared<SharedRandomGuard>());
  if (!setup.config.sync_batch_norm) listeners.push_back(std::make_shared<PaddingOnlyGuard>(trained.model.buffers()));
  return listeners;
}

// Divides the samples of this rank between replicas in threads.
void TrainingStep::add_thread_replicas(const Setup& setup) {
  if (setup.config.sync_batch_norm) {
    throw ConfigError(
        "train.data_parallel: replicas in threads have separate batch norm statistics;"
        " remove train.sync_batch_norm, or use ranks instead");
  }
  const auto& replicas = setup.replicas;
  std::vector<DataParallelStep::Replica> others;
  for (std::int64_t i = 1; i < setup.config.data_parallel; ++i) {
    auto model = replicas.make();
    auto step = plain(setup, *model);
    others.push_back({std::move(model), std::move(step)});
  }
  auto all = std::make_unique<DataParallelStep>(
      DataParallelStep::FirstReplica{step(), setup.trained.model, replicas.parameters}, std::move(others),
      *setup.mesh.replicas(), replicas.bucket_bytes, replicas.parts);
  for (const auto& parameters : all->other_parameters()) replicas.unused.look_at(parameters);
  steps_.push_back(std::move(all));
}

void TrainingStep::add_virtual_shards(const Setup& setup) {
  nest<VirtualShards>(setup.mesh.batch(), setup.trained.model.buffers(),
                      VirtualShards::Options{.shards = static_cast<int>(setup.config.virtual_shards),
                                             .current = current_,
                                             .on_empty = [&unused = setup.replicas.unused] { unused.skip_step(); }},
                      [invariant = setup.gradients.invariant](int shard) { invariant->take_gradients(shard); });
}

void TrainingStep::broadcast_from_owners() const {
  for (const auto& shared : shared_) shared->broadcast_from_owner();
}

// All ranks have drawn the same initial values from one seed. From here on only the first rank continues with that
// generator. When a run resumes, each rank has restored the state of its generator.
void TrainingStep::start(std::int64_t step) {
  current_->start_at(step);
  if (step == 0 && generator_seed_) at::manual_seed(*generator_seed_);
}

}  // namespace phalanx
