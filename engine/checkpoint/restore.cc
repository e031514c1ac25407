// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/restore.h"

#include <c10/util/accumulate.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "engine/checkpoint/stored_tensors.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using Shape = std::vector<std::int64_t>;

std::vector<SafetensorsFile> open_files(const Checkpoint& checkpoint, std::string (*name)(int, int)) {
  std::vector<SafetensorsFile> files;
  const int ranks = checkpoint.manifest.ranks;
  for (int rank = 0; rank < ranks; ++rank) files.emplace_back(checkpoint.path + "/" + name(rank, ranks));
  return files;
}

std::string text(const Shape& shape) {
  std::ostringstream text;
  text << at::IntArrayRef(shape);
  return text.str();
}

void check_model(const Checkpoint& checkpoint, const StoredTensors& stored, const RunState& state) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(checkpoint.path + " belongs to another model: " + why);
  };
  std::set<std::string> known;
  const auto check = [&](const std::string& name, const Shape& shape) {
    known.insert(name);
    Shape there;
    if (!stored.has(name)) refuse("it has no " + name);
    if (!stored.shape(name, there) || there != shape) {
      refuse(name + " has shape " + text(there) + " in it and " + text(shape) + " in this model");
    }
  };
  for (const auto& segment : whole_parameters(*state.parameters)) {
    const Placement* const placement = placement_of(state, segment.name);
    check(segment.name, placement != nullptr ? placement->shape : segment.shape);
  }
  for (const auto& [name, tensor] : state.frozen) {
    const Placement* const placement = placement_of(state, name);
    check(name, placement != nullptr ? placement->shape : tensor.sizes().vec());
  }
  for (const auto& [name, buffer] : state.buffers) check(name, buffer.sizes().vec());
  for (const auto& name : stored.names()) {
    if (!known.contains(name) && !state.elsewhere.contains(name))
      refuse("it has " + name + ", which this model does not have");
  }
}

std::set<std::string> kinds(const std::vector<std::string>& names) {
  std::set<std::string> kinds;
  for (const auto& name : names) kinds.insert(name.substr(0, name.find('/')));
  return kinds;
}

void check_optimizer(const Checkpoint& checkpoint, const StoredTensors& stored, const RunState& state) {
  std::set<std::string> here;
  for (const auto& remembered : state.optimizer->state()) {
    if (remembered.values.numel() > 0) here.insert(remembered.kind);
  }
  const auto there = kinds(stored.names());
  const auto refuse = [&](const std::string& why) {
    throw DataError(checkpoint.path + " belongs to another optimizer: " + why);
  };
  for (const auto& kind : here) {
    if (!there.contains(kind)) refuse("it has no " + kind);
  }
  const bool updates_any =
      std::ranges::any_of(state.slices, [](const Slice& slice) { return slice.values.numel() > 0; });
  if (!state.elsewhere.empty()) return;  // parameters there may be of another kind than any here
  for (const auto& kind : there) {
    if (!here.contains(kind) && updates_any) refuse("it has " + kind + ", which this one does not use");
  }
}

// A part of the optimizer state that is stored as one range.
struct StatePart {
  std::string name;
  std::int64_t offset;
  const Placement* placement;
  at::Tensor values;

  StoredTensors::Range range() const { return {offset, values.numel(), placement}; }
};

std::vector<StatePart> parts_of(const RunState& state) {
  std::vector<StatePart> parts;
  for (const auto& remembered : state.optimizer->state()) {
    const std::string prefix = remembered.kind + "/";
    if (!remembered.parameter.empty()) {
      parts.push_back({prefix + remembered.parameter, 0, placement_of(state, remembered), remembered.values});
      continue;
    }
    for (const auto& segment : state.slices.at(remembered.slice).segments) {
      parts.push_back({prefix + segment.name, segment.offset, placement_of(state, segment.name),
                       view_of(remembered.values, segment)});
    }
  }
  return parts;
}

void restore_weights(const StoredTensors& stored, const RunState& state) {
  if (state.values_in_slices) {
    for (const auto& slice : state.slices) {
      for (const auto& segment : slice.segments) {
        stored.read(segment.name, {segment.offset, segment.count, placement_of(state, segment.name)},
                    view_of(slice.values, segment));
      }
    }
    return;
  }
  for (const auto& bucket : state.parameters->buckets()) {
    for (const auto& segment : bucket.segments) {
      stored.read(segment.name, {0, segment.count, placement_of(state, segment.name)}, view_of(bucket.values, segment));
    }
  }
}

void restore_optimizer(const StoredTensors& stored, const std::vector<StatePart>& parts) {
  for (const auto& part : parts) stored.read(part.name, part.range(), part.values);
}

// Returns the tensors under their original names.
NamedTensors saved_in(const SafetensorsFile& file, const std::string& prefix) {
  NamedTensors all;
  for (const auto& entry : file.entries()) {
    if (entry.name.starts_with(prefix)) all.emplace_back(entry.name.substr(prefix.size()), file.read(entry));
  }
  return all;
}

// `common` is as in SavedFiles.
void load(const CheckpointPart& part, const std::vector<SafetensorsFile>& files, int common) {
  const std::string prefix = "part/" + part.name + "/";
  auto common_first = files;
  if (common > 0) std::swap(common_first.front(), common_first.at(static_cast<std::size_t>(common)));
  const StoredTensors all(common_first, prefix);
  const auto saved_by = [&](int rank) {
    const int file = !part.every_rank && rank == 0 ? common : rank;
    return saved_in(files.at(static_cast<std::size_t>(file)), prefix);
  };
  const auto read = [&](const std::string& name, const Placement* placement, const at::Tensor& into) {
    // Other tensors with this name may belong to other stages of a pipeline.
    if (all.read_first(name, placement, into)) return true;
    if (!all.has(name)) return false;
    const auto wanted = placement == nullptr ? into.numel() : c10::multiply_integers(placement->shape);
    Shape there;
    if (!all.shape(name, there) || c10::multiply_integers(there) != wanted) return false;
    all.read(name, {.count = into.numel(), .placement = placement}, into);
    return true;
  };
  part.load({.ranks = static_cast<int>(files.size()), .of = saved_by, .read = read});
}

// Restores everything. `same_rank` is as in the public function.
void restore_from(const SavedFiles& files, std::int64_t updates, RunState& state, std::optional<int> same_rank) {
  const auto& [weights, rest, common] = files;
  // If replicas differ, values come from the first replica: the first rank that has a parameter, or a part of it.
  const auto mine = same_rank ? std::vector{rest.at(static_cast<std::size_t>(*same_rank))} : rest;
  const StoredTensors whole(weights, ""), replica(mine, "replica/weights/");
  const auto parts = parts_of(state);
  if (replica.names().empty()) {
    restore_weights(whole, state);
    restore_optimizer(StoredTensors(rest, "optimizer/"), parts);
  } else {
    restore_weights(replica, state);
    // The saved rank may have updated fewer parameters than this one, or a different part. Together, the ranks have all
    // state.
    const StoredTensors own_state(mine, "replica/optimizer/"), all_state(rest, "optimizer/");
    const bool has_all =
        std::ranges::all_of(parts, [&](const StatePart& part) { return own_state.has(part.name, part.range()); });
    restore_optimizer(has_all ? own_state : all_state, parts);
  }
  for (const auto& [name, tensor] : state.frozen) {
    whole.read(name, {0, tensor.numel(), placement_of(state, name)}, tensor);
  }
  for (const auto& [name, buffer] : state.buffers) whole.read(name, {.count = buffer.numel()}, buffer);
  state.optimizer->set_updates(updates);
  for (const auto& part : state.parts) load(part, rest, common);
}

}  // namespace

void check_fits(const Checkpoint& checkpoint, const RunState& state) {
  const auto weights = open_files(checkpoint, weights_file), rest = open_files(checkpoint, state_file);
  check_model(checkpoint, StoredTensors(weights, ""), state);
  check_optimizer(checkpoint, StoredTensors(rest, "optimizer/"), state);
}

void restore(const Checkpoint& checkpoint, RunState& state, std::optional<int> same_rank) {
  restore_from({open_files(checkpoint, weights_file), open_files(checkpoint, state_file)}, checkpoint.manifest.updates,
               state, same_rank);
}

void restore(const SavedFiles& files, std::int64_t updates, RunState& state) {
  restore_from(files, updates, state, std::nullopt);
}

}  // namespace phalanx
