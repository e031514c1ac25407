#include <algorithm>
#include <cstring>

#include "framework/backends/direct/collectives.h"
#include "framework/backends/direct/reduce_kernel.h"

namespace phalanx::direct {
namespace {

struct Slice {
  std::int64_t begin = 0, count = 0;
};

// Rank's share of `count` elements: nearly equal, each but the last a whole number of cache lines, so that no two ranks
// write to one line.
Slice slice_of(std::int64_t count, std::size_t element_bytes, int rank, int size) {
  const auto per_line = static_cast<std::int64_t>(kLine / element_bytes);
  const std::int64_t lines = (count + per_line - 1) / per_line;
  const std::int64_t begin = std::min(count, lines * rank / size * per_line);
  const std::int64_t end = std::min(count, lines * (rank + 1) / size * per_line);
  return {begin, end - begin};
}

std::vector<std::byte*> scratches(Group& group, int half, std::size_t offset) {
  std::vector<std::byte*> all;
  for (int rank = 0; rank < group.size(); ++rank) all.push_back(group.scratch(rank, half) + offset);
  return all;
}

// Combines this rank's slice of what lies at `addresses` and writes it to all of them.
void reduce_own_slice(const Group& group, std::vector<std::byte*> addresses, std::int64_t count, c10::ScalarType dtype,
                      Reduction op) {
  const auto element_bytes = c10::elementSize(dtype);
  const Slice slice = slice_of(count, element_bytes, group.rank(), group.size());
  for (auto& address : addresses) address += static_cast<std::size_t>(slice.begin) * element_bytes;
  const std::vector<const std::byte*> sources(addresses.begin(), addresses.end());
  reduce(dtype, op, addresses, sources, slice.count);
}

void two_shot(Group& group, const Elements& elements, Reduction op) {
  const auto chunk = static_cast<std::int64_t>(kScratchBytes / elements.element_bytes());
  int half = 0;
  for (std::int64_t begin = 0; begin < elements.count; begin += chunk, half ^= 1) {
    const std::int64_t count = std::min(chunk, elements.count - begin);
    const std::size_t bytes = static_cast<std::size_t>(count) * elements.element_bytes();
    std::byte* data = elements.data + static_cast<std::size_t>(begin) * elements.element_bytes();
    std::byte* own = group.scratch(group.rank(), half);
    std::memcpy(own, data, bytes);
    group.meet_again();
    reduce_own_slice(group, scratches(group, half, 0), count, elements.dtype, op);
    group.meet_again();  // the other half is free now: everybody has copied out what it held
    std::memcpy(data, own, bytes);
  }
}

// Then all ranks have copied what they have into their scratch: they decided by the same sizes.
bool nobody_is_reachable(const Group& group) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (group.call_of(rank).location.region != 0) return false;
  }
  return true;
}

void combine_scratches(Group& group, const Elements& elements, Reduction op) {
  std::vector<const std::byte*> sources;
  for (int rank = 0; rank < group.size(); ++rank) sources.push_back(group.scratch(rank));
  std::byte* target[] = {elements.data};
  reduce(elements.dtype, op, target, sources, elements.count);
}

}  // namespace

void all_reduce(Group& group, const AddressBook& book, Elements elements, Reduction op) {
  const std::size_t bytes = elements.bytes();
  const bool tiny = bytes < kInPlaceBytes;
  const Location location = tiny ? Location{} : book.locate(elements.data, bytes);
  const bool one_shot = location.region == 0 && bytes <= kOneShotBytes;
  if (one_shot) std::copy_n(elements.data, bytes, group.next_scratch());
  group.meet({.elements = elements.count,
              .location = location,
              .operation = Operation::kAllReduce,
              .dtype = static_cast<std::uint8_t>(elements.dtype),
              .reduction = static_cast<std::uint8_t>(op)});
  if (one_shot && nobody_is_reachable(group)) {
    combine_scratches(group, elements, op);
  } else if (auto addresses = book.addresses(group); !addresses.empty()) {
    reduce_own_slice(group, std::move(addresses), elements.count, elements.dtype, op);
    group.meet_again();
  } else {
    two_shot(group, elements, op);
  }
}

}  // namespace phalanx::direct
