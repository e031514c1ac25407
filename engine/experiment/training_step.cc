// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/training_step.h"

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "engine/step/accumulated_step.h"
#include "engine/step/captured_step.h"
#include "engine/step/data_parallel_step.h"
#include "engine/step/empty_share_step.h"
#include "engine/step/no_random_step.h"
#include "engine/step/plain_step.h"
#include "engine/step/reduced_step.h"
#include "engine/step/statistics_step.h"
#include "engine/watch/timed.h"
#include "framework/base/error.h"
#include "framework/base/random.h"
#include "framework/comm/locality.h"
#include "framework/comm/texts.h"
#include "framework/parallel/sync_batch_norm.h"
#include "models/has_experts.h"
#include "models/model.h"

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

void checkpoint_activations(Model& model, const TrainConfig& config) {
  if (config.checkpoint_activations == 0 || model.checkpoint_activations(config.checkpoint_activations)) return;
  throw ConfigError(
      "train.checkpoint_activations: the model has no blocks to recompute;"
      " gpt and resnet18 have some");
}

double factor_of(const TrainingStep::Setup& setup) {
  const auto ranks = static_cast<double>(setup.mesh.replicas()->size());  // strategies take the mean of their gradients
  const auto sharing = setup.invariant == nullptr ? ranks : static_cast<double>(setup.config.virtual_shards);
  return setup.config.gradients == "sum" ? sharing * ranks : sharing;
}

bool shares_its_process(Communicator& world) {
  const auto processes = all_gather_text(host_key() + " " + std::to_string(::getpid()), world);
  return std::ranges::count(processes, processes[static_cast<std::size_t>(world.rank())]) > 1;
}

}  // namespace

Arithmetic arithmetic_of(const TrainConfig& config, const ModelSpec& model) {
  return {.dtype = dtype_of(config.precision), .images = images_of(config, model)};
}

std::unique_ptr<Step> TrainingStep::innermost(const Setup& setup) {
  if (setup.pipeline == nullptr) return plain(setup, setup.model);
  checkpoint_activations(setup.model, setup.config);
  auto all = setup.pipeline->setup(setup.model, setup.task, setup.mesh);
  all.factor = factor_of(setup);
  all.arithmetic = arithmetic_of(setup.config, setup.task.model());
  all.arithmetic.loss_scale = setup.loss_scale;
  all.seed = step_seed_;
  all.segments = setup.config.checkpoint_activations;
  auto step = std::make_unique<PipelineStep>(std::move(all));
  pipeline_ = step.get();
  return step;
}

std::unique_ptr<Step> TrainingStep::plain(const Setup& setup, Model& model) const {
  Arithmetic arithmetic = arithmetic_of(setup.config, setup.task.model());
  arithmetic.loss_scale = setup.loss_scale;
  checkpoint_activations(model, setup.config);
  return std::make_unique<PlainStep>(model, setup.task, factor_of(setup), arithmetic, model.leave_scores_divided(),
                                     step_seed_);
}

TrainingStep::TrainingStep(const Setup& setup)
    : seed_(setup.seed),
      rank_(setup.mesh.batch()->rank()),
      threads_(setup.config.data_parallel > 1 || shares_its_process(*setup.mesh.control())) {
  steps_.push_back(innermost(setup));
  nest(setup);
  lend(setup);
  if (setup.device.is_cpu() && setup.config.data_parallel == 1) {
    auto counted = std::make_unique<CountedStep>(step());
    counted_ = counted.get();
    steps_.push_back(std::move(counted));
  }
  auto random = std::make_unique<RandomStep>(step(), step_seed_, seed_);
  random_ = random.get();
  steps_.push_back(std::move(random));
}

void TrainingStep::nest(const Setup& setup) {
  const auto& config = setup.config;
  if (config.cuda_graph) {
    step_seed_->on_device = at::zeros({}, at::device(setup.device).dtype(at::kLong));
    steps_.push_back(std::make_unique<CapturedStep>(step(), setup.device, setup.loss_scale));
  }
  if (config.sync_batch_norm) {
    auto statistics = std::make_shared<BatchStatistics>(BatchStatistics{.group = setup.mesh.batch()});
    if (setup.model.synchronize_batch_norm(statistics) == 0) {
      throw ConfigError("train.sync_batch_norm: the model has no batch norm; leave it out");
    }
    steps_.push_back(std::make_unique<StatisticsStep>(step(), std::move(statistics)));
  }
  const bool reduces = setup.after_backward != nullptr;
  if (reduces) steps_.push_back(std::make_unique<ReducedStep>(step(), setup.after_backward));
  steps_.push_back(std::make_unique<TimedStep>(step(), setup.clock));
  if (config.data_parallel > 1) share_out(setup);
  if (config.accumulate > 1) {
    // Ranks that divide experts communicate in each part, so all ranks take the same number of parts.
    const bool together = config.sync_batch_norm || reduces || has_experts(setup.model);
    steps_.push_back(std::make_unique<AccumulatedStep>(step(), config.accumulate, together));
  }
  if (setup.invariant != nullptr) {
    divide(setup);
    return;
  }
  if (!config.sync_batch_norm) steps_.push_back(std::make_unique<EmptyShareStep>(step(), setup.model.buffers()));
  if (threads_) steps_.push_back(std::make_unique<NoRandomStep>(step()));
  if (setup.turns.any()) {
    auto turns =
        std::make_unique<TurnStep>(step(), setup.task, setup.turns.parameters(setup.model), setup.turns.current());
    turns_ = turns.get();
    steps_.push_back(std::move(turns));
  }
}

// Lends parameters along the tensor axis, before a pipeline lends parameters of its first rank to later stages.
void TrainingStep::lend(const Setup& setup) {
  if (setup.lent.empty()) return;
  auto lending = std::make_unique<LendingStep>(
      step(), SharedParameters({{.ranks = setup.mesh.along(Axis::kTensor), .parameters = setup.lent}},
                               SharedParameters::Updates::kOnceAsOne));
  lending_ = lending.get();
  steps_.push_back(std::move(lending));
}

// Divides the samples of this rank between replicas in threads.
void TrainingStep::share_out(const Setup& setup) {
  if (setup.config.sync_batch_norm) {
    throw ConfigError(
        "train.data_parallel: replicas in threads have separate batch norm statistics;"
        " leave out train.sync_batch_norm, or use ranks instead");
  }
  std::vector<DataParallelStep::Replica> others;
  for (std::int64_t i = 1; i < setup.config.data_parallel; ++i) {
    auto model = setup.make_replica();
    auto replica = plain(setup, *model);
    others.push_back({std::move(model), std::move(replica)});
  }
  auto all = std::make_unique<DataParallelStep>(step(), setup.model, setup.parameters, std::move(others),
                                                *setup.mesh.replicas(), setup.bucket_bytes);
  for (const auto& parameters : all->other_parameters()) setup.unused.look_at(parameters);
  steps_.push_back(std::move(all));
}

void TrainingStep::divide(const Setup& setup) {
  auto shards = std::make_unique<VirtualShards>(
      step(), setup.mesh.batch(), setup.model.buffers(),
      VirtualShards::Options{.shards = static_cast<int>(setup.config.virtual_shards), .seed = setup.seed},
      [invariant = setup.invariant](int shard) { invariant->take_gradients(shard); });
  shards_ = shards.get();
  steps_.push_back(std::move(shards));
}

// All ranks have drawn the same initial values from one seed. From here on only the first rank continues with that
// generator. When a run resumes, each rank has restored the state of its generator.
void TrainingStep::start(std::int64_t step) {
  random_->set_step(step);
  if (shards_ != nullptr) return shards_->set_step(step);
  if (turns_ != nullptr) turns_->set_step(step);
  if (step == 0 && rank_ > 0 && !threads_) at::manual_seed(mix(seed_, static_cast<std::uint64_t>(rank_)));
}

}  // namespace phalanx
