// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/mesh_check.h"

#include <algorithm>

namespace phalanx {
namespace {

// Returns the mesh of `ranks` ranks that is closest to the requested one.
std::string nearest_mesh(const MeshConfig& mesh, std::int64_t ranks) {
  std::string text;
  for (const auto& [name, wanted] : model_parallel_axes(mesh)) {
    auto size = std::min(wanted, ranks);
    while (ranks % size != 0) --size;
    ranks /= size;
    text += ", " + name + ": " + std::to_string(size);
  }
  return "data: " + std::to_string(ranks) + text;
}

MeshShape shape_of(const MeshConfig& mesh, std::int64_t ranks) {
  MeshShape shape;
  shape[Axis::kPipe] = mesh.pipe;
  shape[Axis::kTensor] = mesh.tensor;
  shape[Axis::kExpert] = mesh.expert;
  shape[Axis::kContext] = mesh.context;
  shape[Axis::kData] = mesh.data > 0 ? mesh.data : std::max<std::int64_t>(1, ranks / shape.product());
  return shape;
}

// Returns why the ranks do not fit the mesh; empty: they do.
std::string mesh_problem(const MeshConfig& mesh, std::int64_t ranks) {
  const auto shape = shape_of(mesh, ranks);
  if (shape.product() == ranks) return "";
  const std::string there = std::to_string(ranks) + (ranks == 1 ? " rank trains" : " ranks train");
  std::string axes = "data: " + std::to_string(shape[Axis::kData]);
  const auto divided = model_parallel_axes(mesh);
  if (divided.empty()) return axes + ", but " + there + "; 0 uses all";
  for (const auto& [name, size] : divided) axes += " times " + name + ": " + std::to_string(size);
  return axes + " is " + std::to_string(shape.product()) + ", but " + there + "; {" + nearest_mesh(mesh, ranks) +
         "} fits";
}

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

std::vector<std::pair<std::string, std::int64_t>> model_parallel_axes(const MeshConfig& mesh) {
  std::vector<std::pair<std::string, std::int64_t>> axes{
      {"pipe", mesh.pipe}, {"tensor", mesh.tensor}, {"expert", mesh.expert}, {"context", mesh.context}};
  std::erase_if(axes, [](const auto& axis) { return axis.second == 1; });
  return axes;
}

MeshShape mesh_shape(const MeshConfig& mesh, std::int64_t ranks) {
  const auto problem = mesh_problem(mesh, ranks);
  if (!problem.empty()) throw ConfigError("mesh: " + problem);
  return shape_of(mesh, ranks);
}

// Checks the division of samples and model between the ranks.
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
