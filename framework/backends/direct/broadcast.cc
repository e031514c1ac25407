#include <algorithm>
#include <cstring>

#include "framework/backends/direct/collectives.h"

namespace phalanx::direct {
namespace {

// Root fills one half while the others still read the half before: a meeting frees a half for the chunk after next.
void feed(Group& group, const Elements& elements, int root) {
  int half = 0;
  for (std::size_t begin = 0; begin < elements.bytes(); begin += kScratchBytes, half ^= 1) {
    const std::size_t bytes = std::min(kScratchBytes, elements.bytes() - begin);
    std::byte* scratch = group.scratch(root, half);
    if (group.rank() == root) std::memcpy(scratch, elements.data + begin, bytes);
    group.meet_again();
    if (group.rank() != root) std::memcpy(elements.data + begin, scratch, bytes);
  }
  group.meet_again();  // the scratch is root's again
}

}  // namespace

void broadcast(Group& group, const AddressBook& book, Elements elements, int root) {
  const bool is_root = group.rank() == root;
  const bool one_shot = elements.bytes() <= kOneShotBytes;
  if (one_shot && is_root) std::copy_n(elements.data, elements.bytes(), group.next_scratch());
  group.meet({.elements = elements.count,
              .location = one_shot ? Location{} : book.locate(elements.data, elements.bytes()),
              .root = root,
              .operation = Operation::kBroadcast,
              .dtype = static_cast<std::uint8_t>(elements.dtype)});
  if (one_shot) {
    if (!is_root) std::copy_n(group.scratch(root), elements.bytes(), elements.data);
    return;
  }
  if (auto addresses = book.addresses(group); !addresses.empty()) {
    if (!is_root) std::memcpy(elements.data, addresses[root], elements.bytes());
    group.meet_again();
    return;
  }
  feed(group, elements, root);
}

void exchange(Group& group, Operation operation, std::int64_t argument, std::span<const std::byte> mine,
              std::span<std::byte> all) {
  std::ranges::copy(mine, group.next_scratch());
  group.meet({.elements = argument, .operation = operation});
  for (int rank = 0; rank < group.size(); ++rank) {
    std::memcpy(all.data() + mine.size() * rank, group.scratch(rank), mine.size());
  }
}

void barrier(Group& group) { group.meet({.operation = Operation::kBarrier}); }

}  // namespace phalanx::direct
