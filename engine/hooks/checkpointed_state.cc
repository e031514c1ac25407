// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/checkpointed_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "engine/checkpoint/numbers_part.h"
#include "engine/checkpoint/random_part.h"
#include "engine/checkpoint/strategy_part.h"
#include "framework/base/state_dict.h"
#include "models/model.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

CheckpointPart schedule_part(Schedule& schedule) {
  return numbers_part(
      "schedule", [&schedule] { return schedule.state(); },
      [&schedule](const std::vector<double>& state) { schedule.load(state); });
}

// Each rank saves its own running statistics, since ranks see different batches. The same number of ranks restores
// them; another number keeps the means, which were restored with the weights.
CheckpointPart buffers_part(Model& model, int rank, int ranks) {
  return {.name = "buffers",
          .save = [&model] { return model.named_buffers(); },
          .load =
              [&model, rank, ranks](const SavedRanks& saved) {
                if (saved.ranks != ranks) return;
                const at::NoGradGuard no_grad;
                const NamedTensors own = saved.of(rank);
                const std::map<std::string, at::Tensor> by_name(own.begin(), own.end());
                for (auto& [name, buffer] : model.named_buffers()) {
                  const auto found = by_name.find(name);  // absent if that rank had other layers
                  if (found != by_name.end()) buffer.copy_(found->second);
                }
              }};
}

CheckpointPart flag_part(const std::string& name, bool& flag) {
  return {.name = name,
          .save = [&flag] { return NamedTensors{{"flag", at::full({1}, flag ? 1 : 0, at::kLong)}}; },
          .load = [&flag](const SavedRanks& saved) { flag = saved.of(0).at(0).second.item<std::int64_t>() != 0; },
          .every_rank = false};
}

}  // namespace

RunState checkpointed_state(const CheckpointedRun& run, const std::vector<Slice>& slices,
                            std::vector<CheckpointPart> parts, const bool& same_setup, bool& replicas_differed) {
  const Replica& replica = run.replica;
  const PartitionedModel& part = *replica.part;
  const Mesh& mesh = part.mesh;
  RunState state{.parameters = &replica.flat->parameters,
                 .slices = slices,
                 .optimizer = &replica.optimizer(),
                 .buffers = replica.model().named_buffers(),
                 .frozen = frozen_parameters(replica.model()),
                 .parts = std::move(parts),
                 .placements = part.placements,
                 .elsewhere = replica.elsewhere(),
                 .owns_buffers = mesh.replicas()->rank() == 0 && mesh.position(Axis::kTensor) == 0,
                 .owns_frozen = mesh.replicas()->rank() == 0,
                 .owns_frozen_parts = mesh.position(Axis::kData) == 0 && mesh.position(Axis::kContext) == 0,
                 .part = mesh.model()->rank(),
                 .values_in_slices = run.config.strategy.traits().shards_values};
  state.parts.push_back(random_part(run.world().rank(), part.device));
  state.parts.push_back(buffers_part(replica.model(), run.world().rank(), run.world().size()));
  state.parts.push_back(schedule_part(run.schedule));
  state.parts.push_back(strategy_part(replica.strategy(), run.world().rank(), part.placements, same_setup));
  state.parts.push_back(flag_part("were_apart", replicas_differed));
  return state;
}

}  // namespace phalanx
