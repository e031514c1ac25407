// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/carried_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/checkpoint/memory_file.h"
#include "engine/checkpoint/restore.h"
#include "framework/base/error.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

constexpr std::int64_t kNoStep = -1;  // the step of a rank that has nothing to carry

// Returns the plan by which this rank alone writes everything.
WritePlan plan_of_one(const RunState& state) {
  WritePlan plan;
  for (const auto& segment : whole_parameters(*state.parameters)) {
    const auto number = static_cast<std::int64_t>(plan.numbers.size());
    plan.numbers[segment.name] = number;
    plan.weights[{number, 0, segment.count}] = 0;
  }
  for (const auto& slice : state.slices) {
    for (const auto& segment : slice.segments) {
      if (segment.count > 0) plan.state[{plan.numbers.at(segment.name), segment.offset, segment.count}] = 0;
    }
  }
  return plan;
}

// Returns the manifests of all ranks. Their field `strategy` has the stage, which a manifest lacks.
std::vector<CarriedPosition> gather_positions(const CarriedState& own, Communicator& world) {
  Manifest mine = own.manifest;
  mine.strategy = std::to_string(static_cast<int>(own.stage));
  std::vector<CarriedPosition> all;
  for (const auto& text : all_gather_text(to_text(mine), world)) {
    Manifest manifest = parse_manifest(text, "the carried state of rank " + std::to_string(all.size()));
    const auto stage = static_cast<StepStage>(std::stoi(manifest.strategy));
    manifest.strategy.clear();
    all.push_back({std::move(manifest), stage});
  }
  return all;
}

// Returns the first of the ranks that have come furthest.
int furthest(const std::vector<CarriedPosition>& positions) {
  const auto progress = [](const CarriedPosition& position) {
    // The end of an epoch has no step of its own, but ends with another position.
    return std::tuple(position.manifest.position.step, position.manifest.position.epoch, position.stage);
  };
  return static_cast<int>(std::ranges::max_element(positions, {}, progress) - positions.begin());
}

// Returns the rank that has left the newest centre.
int newest_centre(const CarriedState& own, Communicator& world) {
  std::vector<std::int64_t> orders(static_cast<std::size_t>(world.size()));
  const at::Tensor all = at::empty({world.size()}, at::kLong);
  world.all_gather(all, at::full({1}, own.centre.order, at::kLong)).wait();
  std::copy_n(all.data_ptr<std::int64_t>(), orders.size(), orders.begin());
  const auto newest = std::ranges::max_element(orders);
  if (*newest < 0) throw Error("no rank has what the parameter servers had for the run");
  return static_cast<int>(newest - orders.begin());
}

// Returns a file with the tensors of another one and further ones.
std::string with_tensors(const std::string& file, NamedTensors more) {
  const MemoryFile there(file);
  NamedTensors all = load_safetensors(there.path());
  for (auto& one : more) all.push_back(std::move(one));
  std::string text;
  lay_out_safetensors("carried parts", all, text);
  return text;
}

NamedTensors read_centre(const LeftCentre& centre) {
  NamedTensors all;
  for (const auto& entry : centre.read()) all.emplace_back("part/strategy/" + entry.name, entry.values.contiguous());
  return all;
}

}  // namespace

CarriedState carry(const RunState& state, Manifest manifest, StepStage stage) {
  CarriedState carried{.manifest = std::move(manifest), .stage = stage};
  RunState alone = state;
  alone.owns_buffers = alone.owns_frozen = alone.owns_frozen_parts = true;
  take_snapshot(alone, plan_of_one(state), /*replicas_equal=*/true, carried.snapshot);
  NamedTensors parts;
  for (const auto& part : state.parts) {
    for (auto& [name, tensor] : part.save()) parts.emplace_back("part/" + part.name + "/" + name, tensor);
  }
  lay_out_safetensors("carried parts", parts, carried.parts);
  return carried;
}

CarriedPosition restore_replicas(const CarriedState& own, RunState& state, Communicator& world) {
  const auto positions = gather_positions(own, world);
  const int source = furthest(positions), rank = world.rank();
  const NamedTensors centre = newest_centre(own, world) == rank ? read_centre(own.centre) : NamedTensors{};
  const auto parts = all_gather_text(centre.empty() ? own.parts : with_tensors(own.parts, centre), world);
  const MemoryFile weights(own.snapshot.weights);
  SavedFiles files;
  files.weights.emplace_back(weights.path());
  std::vector<MemoryFile> memory;
  const std::string own_state = centre.empty() ? own.snapshot.state : with_tensors(own.snapshot.state, centre);
  for (int i = 0; i < world.size(); ++i) {
    memory.emplace_back(i == rank ? own_state : parts.at(static_cast<std::size_t>(i)));
    files.state.emplace_back(memory.back().path());
  }
  files.common = source;
  restore(files, own.manifest.updates, state);
  return positions.at(static_cast<std::size_t>(source));
}

CarriedState nothing_carried() {
  CarriedState nothing;
  nothing.manifest.position.step = kNoStep;
  return nothing;
}

CarriedPosition restore_carried(const CarriedState& own, RunState& state, Communicator& world) {
  const auto positions = gather_positions(own, world);
  const int source = furthest(positions);
  const auto& position = positions.at(static_cast<std::size_t>(source));
  if (position.manifest.position.step == kNoStep) {
    throw Error("all ranks that had the state of the run are lost; continue from a checkpoint with --resume=auto");
  }
  const MemoryFile weights(broadcast_text(own.snapshot.weights, world, source));
  const MemoryFile whole_state(broadcast_text(own.snapshot.state, world, source));
  const auto parts = all_gather_text(own.parts, world);
  SavedFiles files;
  files.weights.emplace_back(weights.path());
  std::vector<MemoryFile> memory;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (positions[i].manifest.position.step != kNoStep) memory.emplace_back(parts[i]);
  }
  for (const auto& file : memory) files.state.emplace_back(file.path());
  files.state.at(static_cast<std::size_t>(source)) = SafetensorsFile(whole_state.path());
  files.common = source;
  restore(files, position.manifest.updates, state);
  return position;
}

}  // namespace phalanx
