// SPDX-License-Identifier: Apache-2.0
#include "engine/checkpoint/run_state.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include "engine/meters/across_ranks.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

constexpr std::int64_t kRowColumns = 4;  // rank, parameter, offset, count

using Numbers = std::map<std::string, std::int64_t>;
using Held = std::vector<std::vector<ParameterRange>>;  // by rank

// Every rank's parameters, by stored name, and the part of the model that it has.
struct Inventory {
  struct Item {
    std::string name;
    std::int64_t size = 0;
  };
  std::vector<std::vector<Item>> items;  // by rank
  std::vector<int> parts;                // by rank
};

Inventory take_inventory(const RunState& state, Communicator& world) {
  std::ostringstream own;
  own << state.part << '\n';
  for (const auto& segment : whole_parameters(*state.parameters)) {
    own << segment.count << ' ' << stored_name(state, segment.name) << '\n';
  }
  Inventory all;
  for (const auto& text : all_gather_text(own.str(), world)) {
    std::istringstream lines(text);
    auto& items = all.items.emplace_back();
    lines >> all.parts.emplace_back();
    for (Inventory::Item item; lines >> item.size && std::getline(lines >> std::ws, item.name);) items.push_back(item);
  }
  return all;
}

std::vector<ParameterRange> ranges_of(const RunState& state, const Numbers& numbers) {
  std::vector<ParameterRange> ranges;
  for (const auto& slice : state.slices) {
    for (const auto& segment : slice.segments) {
      if (segment.count == 0) continue;
      ranges.push_back({numbers.at(stored_name(state, segment.name)), segment.offset, segment.count});
    }
  }
  return ranges;
}

// For each parameter, keeps only the ranges of ranks that have the first part of the model with this parameter. Ranks
// with other parts may divide it differently.
void leave_first_parts(Held& held, const std::vector<int>& parts) {
  std::map<std::int64_t, int> first;
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    for (const auto& range : held[rank]) {
      const auto [at, added] = first.emplace(range.parameter, parts[rank]);
      if (!added) at->second = std::min(at->second, parts[rank]);
    }
  }
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    std::erase_if(held[rank], [&](const auto& range) { return first.at(range.parameter) != parts[rank]; });
  }
}

Held gather_ranges(const std::vector<ParameterRange>& mine, Communicator& world) {
  at::Tensor rows = at::empty({static_cast<std::int64_t>(mine.size()) * kRowColumns}, at::kLong);
  auto* next = rows.data_ptr<std::int64_t>();
  for (const auto& range : mine) {
    for (const std::int64_t value : {std::int64_t{world.rank()}, range.parameter, range.offset, range.count}) {
      *next++ = value;
    }
  }
  const at::Tensor all = gather_ranks(rows, world);
  Held held(static_cast<std::size_t>(world.size()));
  const auto* row = all.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < all.numel(); i += kRowColumns, row += kRowColumns) {
    held[static_cast<std::size_t>(row[0])].push_back({row[1], row[2], row[3]});
  }
  return held;
}

std::string with_placement(const std::string& parameter, const Placement* placement) {
  return placement == nullptr ? parameter : parameter + to_text(*placement);
}

std::string file_name(const char* what, int rank, int ranks) {
  char name[80];
  std::snprintf(name, sizeof(name), "%s-%05d-of-%05d.safetensors", what, rank + 1, ranks);
  return name;
}

}  // namespace

std::vector<Segment> whole_parameters(const FlatParameters& parameters) {
  std::vector<Segment> all;
  for (const auto& bucket : parameters.buckets()) all.insert(all.end(), bucket.segments.begin(), bucket.segments.end());
  return all;
}

const Placement* placement_of(const RunState& state, const std::string& parameter) {
  const auto found = state.placements.find(parameter);
  return found == state.placements.end() ? nullptr : &found->second;
}

const Placement* placement_of(const RunState& state, const StateTensor& of_parameter) {
  const auto* const placement = placement_of(state, of_parameter.parameter);
  return placement != nullptr && of_parameter.values.sizes().equals(placement->part_shape()) ? placement : nullptr;
}

std::string stored_name(const RunState& state, const std::string& parameter) {
  return with_placement(parameter, placement_of(state, parameter));
}

std::string stored_name(const RunState& state, const StateTensor& of_parameter) {
  return with_placement(of_parameter.parameter, placement_of(state, of_parameter));
}

std::string stored_name(const RunState& state, const Segment& segment, bool with_shape) {
  std::string name = stored_name(state, segment.name);
  if (segment.whole()) return name;
  if (with_shape && !state.placements.contains(segment.name)) {
    name += to_text(Placement{.shape = segment.shape, .dim = 0, .ranges = {{0, segment.shape.at(0)}}});
  }
  return name + "[" + std::to_string(segment.offset) + ":" + std::to_string(segment.offset + segment.count) + "]";
}

WritePlan make_plan(const RunState& state, Communicator& world) {
  const Inventory inventory = take_inventory(state, world);
  Numbers numbers;  // in the order of the buckets, rank by rank
  std::vector<std::int64_t> sizes;
  Held whole;
  for (const auto& items : inventory.items) {
    auto& ranges = whole.emplace_back();
    for (const auto& [name, size] : items) {
      const auto [at, added] = numbers.emplace(name, static_cast<std::int64_t>(sizes.size()));
      if (added) sizes.push_back(size);
      ranges.push_back({at->second, 0, size});
    }
  }
  Held cut = gather_ranges(ranges_of(state, numbers), world);
  leave_first_parts(whole, inventory.parts);
  leave_first_parts(cut, inventory.parts);
  WritePlan plan{.rank = world.rank(),
                 .ranks = world.size(),
                 .numbers = {},
                 .weights = assign_writers(state.values_in_slices ? cut : whole, sizes),
                 .state = assign_writers(cut, sizes)};
  for (const auto& segment : whole_parameters(*state.parameters)) {
    plan.numbers[segment.name] = numbers.at(stored_name(state, segment.name));
  }
  return plan;
}

std::string weights_file(int rank, int ranks) { return file_name("weights", rank, ranks); }
std::string state_file(int rank, int ranks) { return file_name("state", rank, ranks); }

}  // namespace phalanx
