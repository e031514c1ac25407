// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <map>

#include "engine/checkpoint/checkpointer.h"

namespace phalanx {
namespace {

using RangeFilter = std::function<bool(const ParameterRange&)>;

RangeFilter written_by(const RangeWriters& writers, int rank) {
  return [&writers, rank](const ParameterRange& range) {
    const auto found = writers.find(range);
    return found != writers.end() && found->second == rank;
  };
}

// State that is not one number per element is written together with the parameter's first element.
bool has_first(const RangeWriters& writers, std::int64_t parameter, int rank) {
  const auto found = writers.lower_bound(ParameterRange{parameter, 0, 0});
  return found != writers.end() && found->first.parameter == parameter && found->second == rank;
}

void add_weights(const RunState& state, const WritePlan& plan, const RangeFilter& mine, const std::string& prefix,
                 NamedTensors& tensors) {
  for (const auto& bucket : state.parameters->buckets()) {
    for (std::size_t i = 0; i < bucket.segments.size(); ++i) {
      const auto& segment = bucket.segments[i];
      if (!mine({plan.numbers.at(segment.name), 0, segment.count})) continue;
      tensors.emplace_back(prefix + stored_name(state, segment.name), bucket.parameters[i]);
    }
  }
}

// Adds this rank's values if no rank has whole parameters.
void add_values(const RunState& state, const WritePlan& plan, const RangeFilter& mine, NamedTensors& tensors) {
  for (const auto& slice : state.slices) {
    for (const auto& segment : slice.segments) {
      if (segment.count == 0 || !mine({plan.numbers.at(segment.name), segment.offset, segment.count})) continue;
      tensors.emplace_back(stored_name(state, segment, true), view_of(slice.values, segment));
    }
  }
}

void add_slice(const RunState& state, const StateTensor& remembered, const WritePlan& plan, const RangeFilter& mine,
               const std::string& prefix, NamedTensors& tensors) {
  for (const auto& segment : state.slices.at(remembered.slice).segments) {
    if (segment.count == 0 || !mine({plan.numbers.at(segment.name), segment.offset, segment.count})) continue;
    tensors.emplace_back(prefix + remembered.kind + "/" + stored_name(state, segment, false),
                         view_of(remembered.values, segment));
  }
}

void add_optimizer(const RunState& state, const WritePlan& plan, bool all, const std::string& prefix,
                   NamedTensors& tensors) {
  const RangeFilter mine = all ? [](const ParameterRange&) { return true; } : written_by(plan.state, plan.rank);
  for (const auto& remembered : state.optimizer->state()) {
    if (remembered.parameter.empty()) {
      add_slice(state, remembered, plan, mine, prefix, tensors);
    } else if (all || has_first(plan.state, plan.numbers.at(remembered.parameter), plan.rank)) {
      tensors.emplace_back(prefix + remembered.kind + "/" + stored_name(state, remembered), remembered.values);
    }
  }
}

}  // namespace

void take_snapshot(const RunState& state, const WritePlan& plan, bool replicas_equal, Snapshot& snapshot) {
  NamedTensors weights, rest;
  const RangeFilter mine = written_by(plan.weights, plan.rank);
  state.values_in_slices ? add_values(state, plan, mine, weights) : add_weights(state, plan, mine, "", weights);
  if (state.owns_buffers) weights.insert(weights.end(), state.buffers.begin(), state.buffers.end());
  for (const auto& [name, tensor] : state.frozen) {
    const bool owns = placement_of(state, name) == nullptr ? state.owns_frozen : state.owns_frozen_parts;
    if (owns) weights.emplace_back(stored_name(state, name), tensor);
  }
  add_optimizer(state, plan, false, "optimizer/", rest);
  for (const auto& part : state.parts) {
    if (!part.every_rank && plan.rank != 0) continue;
    for (auto& [name, tensor] : part.save()) rest.emplace_back("part/" + part.name + "/" + name, tensor);
  }
  if (!replicas_equal) {
    add_weights(state, plan, [](const ParameterRange&) { return true; }, "replica/weights/", rest);
    add_optimizer(state, plan, true, "replica/optimizer/", rest);
  }
  lay_out_safetensors(weights_file(plan.rank, plan.ranks), weights, snapshot.weights);
  lay_out_safetensors(state_file(plan.rank, plan.ranks), rest, snapshot.state);
}

}  // namespace phalanx
