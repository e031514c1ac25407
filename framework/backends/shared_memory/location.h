// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace phalanx::shared_memory {

inline constexpr std::size_t kLine = 64;  // a cache line

/// A memory location that a peer can resolve. Region 0: only its owner reaches it.
#pragma pack(push, 4)
struct Location {
  std::uint64_t offset = 0;  // from the beginning of the owner's part of the region; an address in kEverywhere
  std::uint32_t region = 0;
};
#pragma pack(pop)
inline constexpr std::uint32_t kEverywhere = ~0u;     // the offset is an address that is valid for every rank
inline constexpr std::uint32_t kFetched = ~0u - 1;    // the offset is an address of the owner, for Fabric::fetch()
inline constexpr std::uint32_t kRing = ~0u - 2;       // the data goes through the owner's ring, beginning at this piece
inline constexpr std::uint32_t kRingBegun = ~0u - 3;  // the same, and the first piece is already there

/// Returns true if the data is in its owner's ring.
constexpr bool is_ring(const Location& location) { return location.region == kRing || location.region == kRingBegun; }

}  // namespace phalanx::shared_memory
