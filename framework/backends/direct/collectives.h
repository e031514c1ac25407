#pragma once

#include <c10/core/ScalarType.h>

#include <cstddef>
#include <span>
#include <vector>

#include "framework/backends/direct/group.h"
#include "framework/comm/reduction.h"

namespace phalanx::direct {

/// Tells where each rank's memory of the current operation lies, in this rank's address space; empty if one of them
/// cannot be reached from here. All ranks get the same answer, reachable or not.
class AddressBook {
 public:
  virtual ~AddressBook() = default;
  virtual Location locate(const void* begin, std::size_t bytes) const = 0;
  virtual std::vector<std::byte*> addresses(const Group& group) const = 0;  // after Group::meet()
};

/// A dense run of elements.
struct Elements {
  std::byte* data = nullptr;
  std::int64_t count = 0;
  c10::ScalarType dtype = c10::kFloat;

  std::size_t element_bytes() const { return c10::elementSize(dtype); }
  std::size_t bytes() const { return static_cast<std::size_t>(count) * element_bytes(); }
};

/// In place. P ranks, n bytes each; elements are always combined in the order of the ranks, so every rank gets bitwise
/// the same result by whichever way:
///
/// - One-shot, below kInPlaceBytes and, where ranks do not reach each other's memory, up to kOneShotBytes: copy into
///   scratch, meet, combine all scratches. 1 meeting; P n bytes read.
/// - In place, where all ranks reach all memory: meet, combine slice r of all and write it to all, meet. 2 meetings; n
///   bytes read, n written.
/// - Two-shot, otherwise: by chunks copy into scratch, meet, combine slice r of all scratches, write it to
///   all, meet, copy out. 1 + 2 ceil(n / kScratchBytes) meetings; 3 n bytes read, 3 n written.
///
/// The latter two are reduce-scatter and all-gather (Rabenseifner 2004) with loads and stores for messages.
void all_reduce(Group& group, const AddressBook& book, Elements elements, Reduction op);

/// Root's elements to all. One-shot up to kOneShotBytes; reachable memory: each rank copies from root's; otherwise root
/// feeds its scratch halves in turn.
void broadcast(Group& group, const AddressBook& book, Elements elements, int root);

/// Every rank's `mine` to every rank, in rank order; at most kScratchBytes, the same size on all ranks. Part of
/// `operation`, whose `argument` must be the same on all ranks.
void exchange(Group& group, Operation operation, std::int64_t argument, std::span<const std::byte> mine,
              std::span<std::byte> all);

void barrier(Group& group);

inline constexpr std::size_t kInPlaceBytes = 512;
inline constexpr std::size_t kOneShotBytes = 4 << 10;

}  // namespace phalanx::direct
