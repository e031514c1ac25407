// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/strategy_part.h"

#include <ATen/core/grad_mode.h>
#include <c10/util/accumulate.h>

#include <map>
#include <string>

#include "framework/base/state_dict.h"

namespace phalanx {
namespace {

// Returns the placement of an entry's parameter if the entry is the same on all ranks and has one number for each
// element of this rank's part. Otherwise returns null, as for whole parameters.
const Placement* placement_of(const StateEntry& entry, const Placements& placements) {
  if (!entry.alike) return nullptr;
  const auto found = placements.find(entry.name.substr(entry.name.rfind('/') + 1));
  if (found == placements.end()) return nullptr;
  const bool of_elements = entry.values.numel() == c10::multiply_integers(found->second.part_shape());
  return of_elements ? &found->second : nullptr;
}

std::string stored_name(const StateEntry& entry, const Placements& placements) {
  const auto* const placement = placement_of(entry, placements);
  return placement == nullptr ? entry.name : entry.name + to_text(*placement);
}

// Loads the entries that the checkpoint has under the same name and shape, and removes them from `wanted`.
void take(StateDict& wanted, const NamedTensors& there, const Placements& placements) {
  const std::map<std::string, at::Tensor> by_name(there.begin(), there.end());
  std::erase_if(wanted, [&](const StateEntry& one) {
    const auto found = by_name.find(stored_name(one, placements));
    if (found == by_name.end() || !found->second.sizes().equals(one.values.sizes())) return false;
    one.values.copy_(found->second);
    return true;
  });
}

}  // namespace

CheckpointPart strategy_part(Strategy& strategy, int rank, const Placements& placements, const bool& same_setup) {
  return {.name = "strategy",
          .save =
              [&strategy, &placements] {
                NamedTensors all;
                for (const auto& one : strategy.state()) all.emplace_back(stored_name(one, placements), one.values);
                return all;
              },
          .load =
              [&strategy, rank, &placements, &same_setup](const SavedRanks& saved) {
                const at::NoGradGuard no_grad;
                strategy.reset();
                StateDict wanted = strategy.state();
                if (same_setup) take(wanted, saved.of(rank), placements);
                for (const auto& one : wanted) {
                  if (one.alike) saved.read(one.name, placement_of(one, placements), one.values);
                }
              }};
}

}  // namespace phalanx
