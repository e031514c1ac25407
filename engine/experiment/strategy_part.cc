#include "engine/experiment/strategy_part.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/all.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/util/accumulate.h>

#include <map>
#include <string>

#include "framework/base/state_dict.h"

namespace phalanx {
namespace {

std::string parameter_of(const std::string& name) { return name.substr(name.rfind('/') + 1); }

// Of the part of a parameter that an entry has a number for each element of; null: of a whole parameter, or of none.
const Placement* placement_of(const StateEntry& entry, const Placements& placements) {
  if (!entry.alike) return nullptr;
  const auto found = placements.find(parameter_of(entry.name));
  if (found == placements.end()) return nullptr;
  const bool of_elements = entry.values.numel() == c10::multiply_integers(found->second.part_shape());
  return of_elements ? &found->second : nullptr;
}

std::string stored_name(const StateEntry& entry, const Placements& placements) {
  const auto* const placement = placement_of(entry, placements);
  return placement == nullptr ? entry.name : entry.name + to_text(*placement);
}

// Puts back what is there in the same part, and leaves the rest in `wanted`.
void take_same(StateDict& wanted, const NamedTensors& there, const Placements& placements) {
  const std::map<std::string, at::Tensor> by_name(there.begin(), there.end());
  std::erase_if(wanted, [&](const StateEntry& one) {
    const auto found = by_name.find(stored_name(one, placements));
    if (found == by_name.end() || !found->second.sizes().equals(one.values.sizes())) return false;
    one.values.copy_(found->second);
    return true;
  });
}

// The whole of something that ranks have saved parts of, and which of its elements are there.
struct Whole {
  at::Tensor values, there;

  void put(const Placement& placement, const at::Tensor& part) {
    if (!values.defined()) {
      values = at::zeros(placement.shape, part.options());
      there = at::zeros(placement.shape, at::kBool);
    }
    placement.put(values, part.view(placement.part_shape()));
    placement.put(there, at::ones(placement.part_shape(), at::kBool));
  }
  bool complete() const { return !there.defined() || there.all().item<bool>(); }
};

// By name without placements, of those that are wanted.
std::map<std::string, Whole> put_together(const StateDict& wanted, const SavedRanks& saved) {
  std::map<std::string, Whole> all;
  for (const auto& one : wanted) all[one.name];
  for (int rank = 0; rank < saved.ranks; ++rank) {
    for (const auto& [stored, values] : saved.of(rank)) {
      std::string name = stored;
      Placement placement;
      const bool part = take_placement(name, placement);
      const auto found = all.find(name);
      if (found == all.end()) continue;
      if (!part) {
        found->second = {.values = values, .there = {}};
      } else if (values.numel() == c10::multiply_integers(placement.part_shape())) {
        found->second.put(placement, values);
      }
    }
  }
  return all;
}

void take_other_parts(const StateDict& wanted, const SavedRanks& saved, const Placements& placements) {
  for (const auto& [name, whole] : put_together(wanted, saved)) {
    if (!whole.values.defined() || !whole.complete()) continue;
    for (const auto& one : wanted) {
      if (one.name != name) continue;
      const auto* const placement = placement_of(one, placements);
      const auto shape = placement == nullptr ? one.values.sizes().vec() : placement->shape;
      if (whole.values.numel() != c10::multiply_integers(shape)) continue;  // of another model
      const at::Tensor values = whole.values.view(shape);
      one.values.copy_(placement == nullptr ? values : placement->take(values).view(one.values.sizes()));
    }
  }
}

}  // namespace

CheckpointPart strategy_part(Synchronizer& strategy, int rank, const Placements& placements, const bool& alike) {
  return {.name = "strategy",
          .save =
              [&strategy, &placements] {
                NamedTensors all;
                for (const auto& one : strategy.state()) all.emplace_back(stored_name(one, placements), one.values);
                return all;
              },
          .load =
              [&strategy, rank, &placements, &alike](const SavedRanks& saved) {
                const at::NoGradGuard no_grad;
                strategy.begin_anew();
                StateDict wanted = strategy.state();
                if (alike) take_same(wanted, saved.of(rank), placements);
                std::erase_if(wanted, [](const StateEntry& one) { return !one.alike; });
                for (int from = 0; from < saved.ranks && !wanted.empty(); ++from) {
                  take_same(wanted, saved.of(from), placements);
                }
                if (!wanted.empty()) take_other_parts(wanted, saved, placements);
              }};
}

}  // namespace phalanx
