#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace phalanx::direct {

enum class Operation : std::uint8_t { kNone, kBroadcast, kAllReduce, kBarrier, kSplit, kAllocate };

inline constexpr std::size_t kLine = 64;                 // a cache line
inline constexpr std::size_t kScratchBytes = 256 << 10;  // per rank and half

/// Where the memory of a call lies. Region 0: nobody but the caller reaches it.
struct Location {
  std::uint32_t region = 0;
  std::uint64_t offset = 0;  // from the caller's part of the region; from address 0 in kEverywhere
};
inline constexpr std::uint32_t kEverywhere = ~0u;  // the offset is an address that is valid for every rank

/// What a rank is about to do: compared by all ranks before any of them acts on it.
struct Call {
  std::int64_t elements = 0;
  Location location{};
  std::int32_t root = 0;
  Operation operation = Operation::kNone;
  std::uint8_t dtype = 0;      // at::ScalarType
  std::uint8_t reduction = 0;  // Reduction
};

enum class Presence : std::uint32_t {
  kHere,
  kLeft,    // takes no part any more; what it posted stands
  kFailed,  // gave up in the middle of the call `failed_in`; that post is void, those before it stand
};

/// A rank's place in shared memory. Written by that rank alone; every other rank reads it.
///
/// Posts alternate between two lines. A rank posts call n + 2 only when all have posted n + 1, so when all are done
/// with reading n: one meeting per operation is enough for what fits into the scratch halves, which alternate alike.
struct Member {
  struct alignas(kLine) Post {
    std::atomic<std::uint64_t> sequence{0};  // of the call, from 1; stored last
    Call call;
  };
  Post posts[2];
  alignas(kLine) std::atomic<std::uint64_t> stage{0};  // meetings after the first of each operation, over all time
  alignas(kLine) std::atomic<Presence> presence{Presence::kHere};
  std::atomic<std::uint64_t> failed_in{0};  // sequence of the call that this rank gave up; before kFailed is stored
  alignas(kLine) std::byte scratch[2][kScratchBytes];
};
static_assert(sizeof(Member::Post) == kLine);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Members of a group side by side: all that its ranks share besides the memory of their tensors. Zeroed memory is a
/// valid start.
struct ControlBlock {
  static std::size_t bytes(int size) { return sizeof(Member) * static_cast<std::size_t>(size); }
  static Member* members(void* memory) { return static_cast<Member*>(memory); }
};

}  // namespace phalanx::direct
