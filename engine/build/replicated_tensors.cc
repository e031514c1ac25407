// SPDX-License-Identifier: Apache-2.0
#include "engine/build/replicated_tensors.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "framework/comm/mesh/mesh.h"
#include "models/trainable_parameters.h"

namespace phalanx {
namespace {

using Kind = ReplicatedTensor::Kind;

// Returns true if all ranks keep the same optimizer state: they apply the same gradients to all parameters.
bool has_copies_of_state(const StrategyTraits& traits) {
  return traits.reduces_gradients && !traits.shards_update && !traits.servers_update && !traits.concurrent_updates;
}

// LibTorch's batch norm has buffers of these names in every kind of model.
bool is_batch_statistic(std::string_view name) {
  static constexpr std::array<std::string_view, 3> kEnds{"running_mean", "running_var", "num_batches_tracked"};
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); });
}

bool has_segment(const Bucket& bucket, const std::string& name) {
  return std::ranges::any_of(bucket.segments, [&](const Segment& segment) { return segment.name == name; });
}

// Adds the state of the parameters that are in this bucket.
void add_state(const Bucket& bucket, const std::vector<StateTensor>& state, const std::vector<Slice>& slices,
               std::vector<ReplicatedTensor>& tensors) {
  for (const auto& one : state) {
    const auto prefix = one.kind + " of ";
    if (!one.parameter.empty()) {
      if (has_segment(bucket, one.parameter)) {
        tensors.push_back({prefix + one.parameter, one.values, Kind::kOptimizerState});
      }
      continue;
    }
    const Slice& slice = slices.at(one.slice);
    if (slice.values.const_data_ptr() != bucket.values.const_data_ptr()) continue;
    for (const auto& segment : slice.segments) {
      tensors.push_back(
          {prefix + segment.name, one.values.narrow(0, segment.begin, segment.count), Kind::kOptimizerState});
    }
  }
}

// Adds the parameters that are not trained. Experts, of which ranks have different ones, may be among them.
void add_frozen(const Replica& replica, std::vector<ReplicatedTensor>& tensors) {
  if (replica.mesh().shape()[Axis::kExpert] > 1 || replica.settings.strategy.traits().shards_values) return;
  for (const auto& [name, values] : frozen_parameters(replica.model())) tensors.push_back({name, values});
}

void add_buffers(const Model& model, bool same_statistics, std::vector<ReplicatedTensor>& tensors) {
  for (const auto& [name, buffer] : model.named_buffers()) {
    if (buffer.numel() == 0 || (!same_statistics && is_batch_statistic(name))) continue;
    tensors.push_back({name, buffer, Kind::kBuffer, !same_statistics});
  }
}

std::vector<ReplicatedTensor> joined(std::vector<ReplicatedTensor> first, std::vector<ReplicatedTensor> second) {
  std::ranges::move(second, std::back_inserter(first));
  return first;
}

}  // namespace

std::vector<ReplicatedTensors> replicated_tensors(const Replica& replica, const std::vector<Slice>& slices,
                                                  bool same_statistics) {
  const StrategyTraits traits = replica.settings.strategy.traits();
  const auto groups = traits.shared_memory ? std::vector<DataParallelGroup>{} : replica.copied_groups();
  auto sets = replicated_parameters(groups);
  if (has_copies_of_state(traits)) {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      sets[i].tensors = [&replica, &slices, parameters = groups[i].parameters, values = sets[i].tensors] {
        std::vector<ReplicatedTensor> state;
        const auto all = replica.optimizer().state();
        for (const auto& bucket : parameters.buckets()) add_state(bucket, all, slices, state);
        return joined(values(), std::move(state));
      };
    }
  }
  const bool same = same_statistics || replica.replica_strategy.invariant != nullptr;
  const auto rest = [&replica, same] {
    std::vector<ReplicatedTensor> tensors;
    add_frozen(replica, tensors);
    add_buffers(replica.model(), same, tensors);
    return tensors;
  };
  const CommunicatorPtr& control = replica.mesh().control(kReplicaAxes);
  const auto with_all = std::ranges::find(sets, control, &ReplicatedTensors::control);
  if (with_all == sets.end()) {
    sets.push_back({replica.mesh().replicas(), control, rest});
  } else {
    with_all->tensors = [values = with_all->tensors, rest] { return joined(values(), rest()); };
  }
  return sets;
}

}  // namespace phalanx
