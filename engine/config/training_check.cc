// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/base/text.h"
#include "framework/comm/backend.h"

namespace phalanx {

void check_training(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& train = config.train;
  refuse_if(problems, train.ema_decay == 1, "train.ema_decay", "must be below 1: at 1 the average never changes");
  refuse_if(problems, train.checkpoint_activations > 0 && train.data_parallel > 1, "train.checkpoint_activations",
            "cannot be combined with train.data_parallel: threads share one random number generator");
  refuse_if(problems, train.offload_activations && train.checkpoint_activations == 0, "train.offload_activations",
            "needs train.checkpoint_activations: it moves the inputs of its segments; set it to a number of segments");
  refuse_if(problems, train.offload_activations && config.device == "cpu", "train.offload_activations",
            "moves activations from a device to the host, but device is cpu; remove it");
  refuse_if(problems, train.sync_batch_norm && train.data_parallel > 1, "train.data_parallel",
            "has replicas with separate batch norm statistics; remove train.sync_batch_norm, or use ranks instead");
  refuse_if(problems, config.loader.threads > 0 && config.loader.prefetch == 0, "loader.threads",
            "need batches to read ahead, but loader.prefetch is 0; set it to the number of batches");
  const double backoff = train.loss_scale.backoff;
  refuse_if(problems, backoff == 0 || backoff == 1, "train.loss_scale.backoff", "must be above 0 and below 1");
  const bool tested = config.evaluate.every_epochs > 0 || config.evaluate.every_steps > 0;
  refuse_if(problems, !train.early_stop.metric.empty() && !tested, "train.early_stop",
            "needs tests during training: set evaluate.every_epochs or evaluate.every_steps");
}

void check_cuda_graph(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (!config.train.cuda_graph) return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& message) {
    refuse_if(problems, wrong, key, message + " with train.cuda_graph");
  };
  refuse(config.device == "cpu", "device", "must be one that records graphs, such as cuda,");
  refuse(!model_parallel_axes(config.mesh).empty(), "mesh",
         "has an axis whose ranks communicate within the step: only data can be used");
  refuse(config.train.sync_batch_norm, "train.sync_batch_norm", "must be false");
  refuse(config.train.data_parallel > 1, "train.data_parallel", "must be 1");
  refuse(config.train.checkpoint_activations > 0, "train.checkpoint_activations", "must be 0");
  refuse(config.train.accumulate > 1, "train.accumulate",
         "must be 1, since the parts of a batch differ from each other,");
  refuse(config.determinism == "world_size_invariant", "determinism", "must be run");
  refuse(!config.turns.empty(), "turns", "change what a step computes and cannot be combined");
}

void check_determinism(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  if (config.determinism != "world_size_invariant") return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& message) {
    refuse_if(problems, wrong, key, message + " with determinism: world_size_invariant");
  };
  const auto shards = config.train.virtual_shards;
  refuse(!config.strategy.traits().virtual_shards, "strategy",
         "must be " + join(Strategies::global().names_where(&StrategyTraits::virtual_shards), " or ") +
             ", without options,");
  refuse(config.launch.threads == 0, "launch.threads",
         "must be set, since results depend on how many threads share an operation,");
  refuse(shards % config.launch.ranks != 0, "train.virtual_shards",
         std::to_string(shards) + " cannot be divided among launch.ranks: " + std::to_string(config.launch.ranks));
  refuse(backend_traits(config.backend).threads && config.launch.ranks > 1, "backend",
         config.backend + " has ranks that share one random number generator, which cannot be combined");
  refuse(config.train.accumulate > 1, "train.accumulate", "must be 1: the virtual shards take its place");
  refuse(config.train.data_parallel > 1, "train.data_parallel", "must be 1");
  refuse(config.train.gradients == "sum", "train.gradients", "must be mean, since sums grow with the number of ranks,");
  refuse(config.train.sync_batch_norm, "train.sync_batch_norm", "must be false");
  const auto moving = [](const MeterConfig& meter) { return meter.meter.selected() == "moving_average"; };
  refuse(std::ranges::any_of(config.watch.meters, moving), "watch.meters",
         "moving_average, which rounds each rank's loss, cannot be combined");
}

}  // namespace phalanx
