#include "engine/checkpoint/run_state.h"

#include <ATen/ops/empty.h>

#include <cstdio>
#include <map>
#include <string>

#include "engine/meters/across_ranks.h"

namespace phalanx {
namespace {

constexpr std::int64_t kColumns = 4;  // rank, parameter, offset, count

std::vector<ParameterRange> ranges_of(const std::vector<Slice>& slices,
                                      const std::map<std::string, std::int64_t>& numbers) {
  std::vector<ParameterRange> ranges;
  for (const auto& slice : slices) {
    for (const auto& segment : slice.segments) {
      if (segment.count > 0) ranges.push_back({numbers.at(segment.name), segment.offset, segment.count});
    }
  }
  return ranges;
}

std::vector<std::vector<ParameterRange>> gather_ranges(const std::vector<ParameterRange>& mine, Communicator& world) {
  at::Tensor rows = at::empty({static_cast<std::int64_t>(mine.size()) * kColumns}, at::kLong);
  auto* next = rows.data_ptr<std::int64_t>();
  for (const auto& range : mine) {
    for (const std::int64_t value : {std::int64_t{world.rank()}, range.parameter, range.offset, range.count}) {
      *next++ = value;
    }
  }
  const at::Tensor all = gather_ranks(rows, world);
  std::vector<std::vector<ParameterRange>> held(static_cast<std::size_t>(world.size()));
  const auto* row = all.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < all.numel(); i += kColumns, row += kColumns) {
    held[static_cast<std::size_t>(row[0])].push_back({row[1], row[2], row[3]});
  }
  return held;
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

WritePlan make_plan(const RunState& state, Communicator& world) {
  std::map<std::string, std::int64_t> numbers;
  std::vector<std::int64_t> sizes;
  std::vector<ParameterRange> whole;
  for (const auto& segment : whole_parameters(*state.parameters)) {
    const auto number = static_cast<std::int64_t>(sizes.size());
    numbers[segment.name] = number;
    sizes.push_back(segment.count);
    whole.push_back({number, 0, segment.count});
  }
  Communicator& replicas = state.replicas ? *state.replicas : world;
  const std::vector<std::vector<ParameterRange>> everywhere(static_cast<std::size_t>(replicas.size()), whole);
  return {.rank = world.rank(),
          .ranks = world.size(),
          .replica = replicas.rank(),
          .weights = divide(everywhere, sizes),
          .state = divide(gather_ranges(ranges_of(state.slices, numbers), replicas), sizes)};
}

std::string weights_file(int rank, int ranks) { return file_name("weights", rank, ranks); }
std::string state_file(int rank, int ranks) { return file_name("state", rank, ranks); }

}  // namespace phalanx
