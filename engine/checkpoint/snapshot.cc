#include "engine/checkpoint/snapshot.h"

#include <functional>
#include <map>

namespace phalanx {
namespace {

using Numbers = std::map<std::string, std::int64_t>;
using Mine = std::function<bool(const ParameterRange&)>;

Numbers numbers_of(const RunState& state) {
  Numbers numbers;
  for (const auto& segment : whole_parameters(*state.parameters)) {
    numbers.emplace(segment.name, static_cast<std::int64_t>(numbers.size()));
  }
  return numbers;
}

// What this rank writes of what the ranks with the same parameters divide. One that has no placement is the same in all
// parts of the model: the first of them writes it.
Mine share_of(const RunState& state, const Division& division, const Numbers& numbers, int replica) {
  std::vector<bool> writes(numbers.size());
  for (const auto& [name, number] : numbers) {
    writes[static_cast<std::size_t>(number)] = state.first_part || state.placements.contains(name);
  }
  return [&division, writes, replica](const ParameterRange& range) {
    const auto found = division.find(range);
    return found != division.end() && found->second == replica && writes[static_cast<std::size_t>(range.parameter)];
  };
}

// The name of what this rank has of a parameter.
std::string stored_name(const RunState& state, const std::string& parameter) {
  const auto found = state.placements.find(parameter);
  return found == state.placements.end() ? parameter : parameter + to_text(found->second);
}

// A state that is not one number for each element goes with the parameter's first element.
bool has_first(const Division& division, std::int64_t parameter, int rank) {
  const auto found = division.lower_bound(ParameterRange{parameter, 0, 0});
  return found != division.end() && found->first.parameter == parameter && found->second == rank;
}

void add_weights(const RunState& state, const Numbers& numbers, const Mine& mine, const std::string& prefix,
                 NamedTensors& tensors) {
  for (const auto& bucket : state.parameters->buckets()) {
    for (std::size_t i = 0; i < bucket.segments.size(); ++i) {
      const auto& segment = bucket.segments[i];
      if (!mine({numbers.at(segment.name), 0, segment.count})) continue;
      tensors.emplace_back(prefix + stored_name(state, segment.name), bucket.parameters[i]);
    }
  }
}

void add_slice(const RunState& state, const StateTensor& remembered, const Numbers& numbers, const Mine& mine,
               const std::string& prefix, NamedTensors& tensors) {
  for (const auto& segment : state.slices.at(remembered.slice).segments) {
    if (segment.count == 0 || !mine({numbers.at(segment.name), segment.offset, segment.count})) continue;
    std::string name = prefix + remembered.kind + "/" + stored_name(state, segment.name);
    if (!segment.whole()) {
      name += "[" + std::to_string(segment.offset) + ":" + std::to_string(segment.offset + segment.count) + "]";
    }
    tensors.emplace_back(std::move(name), view_of(remembered.values, segment));
  }
}

void add_optimizer(const RunState& state, const Numbers& numbers, const WritePlan& plan, bool all,
                   const std::string& prefix, NamedTensors& tensors) {
  const Mine mine =
      all ? [](const ParameterRange&) { return true; } : share_of(state, plan.state, numbers, plan.replica);
  for (const auto& remembered : state.optimizer->state()) {
    if (remembered.parameter.empty()) {
      add_slice(state, remembered, numbers, mine, prefix, tensors);
    } else if (all || (state.first_part && has_first(plan.state, numbers.at(remembered.parameter), plan.replica))) {
      tensors.emplace_back(prefix + remembered.kind + "/" + remembered.parameter, remembered.values);
    }
  }
}

}  // namespace

void take_snapshot(const RunState& state, const WritePlan& plan, bool replicas_equal, Snapshot& snapshot) {
  const Numbers numbers = numbers_of(state);
  NamedTensors weights, rest;
  add_weights(state, numbers, share_of(state, plan.weights, numbers, plan.replica), "", weights);
  if (plan.rank == 0) weights.insert(weights.end(), state.buffers.begin(), state.buffers.end());
  add_optimizer(state, numbers, plan, false, "optimizer/", rest);
  for (const auto& part : state.parts) {
    if (!part.every_rank && plan.rank != 0) continue;
    for (auto& [name, tensor] : part.save()) rest.emplace_back("part/" + part.name + "/" + name, tensor);
  }
  if (!replicas_equal) {
    add_weights(state, numbers, [](const ParameterRange&) { return true; }, "replica/weights/", rest);
    add_optimizer(state, numbers, plan, true, "replica/optimizer/", rest);
  }
  lay_out_safetensors(weights_file(plan.rank, plan.ranks), weights, snapshot.weights);
  lay_out_safetensors(state_file(plan.rank, plan.ranks), rest, snapshot.state);
}

}  // namespace phalanx
