// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/config/config_problems.h"
#include "engine/config/section_checks.h"
#include "framework/base/error.h"
#include "framework/partition/pipeline/schedule.h"

namespace phalanx {
namespace {

// Refuses settings that a pipeline's micro-batches replace or do not support.
void check_pipeline(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto& wanted = config.pipeline;
  const auto& train = config.train;
  if (config.mesh.pipe == 1) {
    refuse_if(problems,
              !wanted.cut.empty() || wanted.micro_batches > 0 || wanted.stages_per_rank > 1 || wanted.memory_limit > 0,
              "pipeline", "divides the model among the ranks of mesh.pipe, which is 1");
    return;
  }
  refuse_if(problems, train.accumulate > 1, "train.accumulate",
            "must be 1 with mesh.pipe above 1: a pipeline takes a batch in micro-batches; set "
            "pipeline.micro_batches to " +
                std::to_string(train.accumulate) + " or more");
  const auto& mesh = config.mesh;
  const auto shares = std::max<std::int64_t>(1, training_ranks(config) / (mesh.pipe * mesh.tensor * mesh.context));
  const auto samples = (train.global_batch_size - 1) / shares + 1;
  const bool too_many = wanted.micro_batches > samples;
  refuse_if(problems, too_many, "pipeline.micro_batches",
            std::to_string(wanted.micro_batches) + " are more than the " + std::to_string(samples) +
                " samples of a batch that each pipeline has");
  if (wanted.micro_batches > 0 && !too_many) {
    try {
      pipeline::make_schedule(wanted.schedule,
                              wanted.options(config.mesh.pipe, static_cast<int>(wanted.micro_batches)));
    } catch (const ConfigError& error) {
      refuse_if(problems, true, "pipeline", error.what());
    }
  }
  refuse_if(problems, train.sync_batch_norm, "train.sync_batch_norm",
            "must be false with mesh.pipe above 1: batch norm sees one micro-batch at a time");
  const auto& traits = config.strategy.traits();
  refuse_if(problems, traits.frees_gradients || traits.shards_values, "strategy.stage",
            "must be 1 with mesh.pipe above 1, whose ranks have the gradients of all micro-batches at the end");
  refuse_if(problems, traits.concurrent_updates, "strategy",
            config.strategy.selected() +
                " has ranks that write into the same parameters at any time, which cannot be combined with mesh.pipe "
                "above 1: parameters that two stages share would differ");
  refuse_if(problems, !config.turns.empty(), "turns",
            "are for models that are trained whole, and cannot be combined with mesh.pipe above 1");
  refuse_if(problems, config.loader.shares != "equal", "loader.shares",
            "must be equal with mesh.pipe above 1, whose ranks have the same samples");
}

}  // namespace

void check_mesh(std::vector<ConfigProblem>& problems, const ExperimentConfig& config) {
  const auto ranks = training_ranks(config);
  if (ranks < 1) return;
  if (const auto problem = mesh_problem(config.mesh, ranks); !problem.empty()) {
    refuse_if(problems, true, "mesh", problem);
    return;
  }
  refuse_if(problems, config.mesh.tensor == 1 && !config.plan.empty(), "plan",
            "divides layers among the ranks of mesh.tensor, which is 1");
  refuse_if(problems, config.mesh.sequence_parallel && config.mesh.tensor == 1, "mesh.sequence_parallel",
            "divides positions among the ranks of mesh.tensor, which is 1");
  refuse_if(problems, config.mesh.async_tensor && !config.mesh.sequence_parallel, "mesh.async_tensor",
            "overlaps the exchange of positions with products, but mesh.sequence_parallel is false");
  refuse_if(problems, config.mesh.sequence_parallel && !config.plan.empty(), "plan",
            "mesh.sequence_parallel works only with the model's own plan; remove one of the two");
  for (std::size_t i = 0; i < config.plan.size(); ++i) {
    const std::string key = "plan[" + std::to_string(i) + "]";
    refuse_if(problems, config.plan[i].layers.empty() || config.plan[i].style.empty(), key.c_str(),
              "needs layers and a style");
  }
  check_pipeline(problems, config);
  const auto& mesh = config.mesh;
  const auto divided = model_parallel_axes(mesh);
  if (divided.empty()) return;
  const auto refuse = [&](bool wrong, const char* key, const std::string& message) {
    refuse_if(problems, wrong, key, message + " with mesh." + divided.front().first + " above 1");
  };
  refuse(config.determinism != "run", "determinism", "world_size_invariant cannot be combined");
  refuse(config.train.data_parallel > 1, "train.data_parallel",
         "has threads whose replicas would share one communicator, so it must be 1");
  refuse_if(problems, mesh.context > 1 && !config.strategy.traits().reduces_gradients, "strategy",
            config.strategy.selected() +
                " lets parameters differ between the ranks of mesh.context, which compute the same sequences; use one"
                " that reduces gradients in every step: " +
                strategies_where(&StrategyTraits::reduces_gradients));
}

}  // namespace phalanx
