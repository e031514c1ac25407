// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "framework/backends/shared_memory/location.h"

namespace phalanx::shared_memory {

/// A few bytes with their own sequence number, as in the protocol LL128 of NCCL. Readers fetch all lines at once while
/// they wait, instead of one after the other after a separate flag.
struct alignas(kLine) FlaggedLine {
  static constexpr std::size_t kBytes = kLine - sizeof(std::uint64_t);

  std::byte data[kBytes];
  std::atomic<std::uint64_t> sequence{0};  // sequence number of the call; stored last

  bool has(std::uint64_t call) const { return sequence.load(std::memory_order_acquire) == call; }
};
static_assert(sizeof(FlaggedLine) == kLine);

/// Returns the number of lines that hold `bytes` bytes.
constexpr std::size_t lines_of(std::size_t bytes) { return (bytes + FlaggedLine::kBytes - 1) / FlaggedLine::kBytes; }

/// Writes `bytes` to consecutive lines as part of call `sequence`.
inline void write_lines(FlaggedLine* line, std::span<const std::byte> bytes, std::uint64_t sequence) {
  // Copies whole lines separately, because the compiler knows their size.
  for (; bytes.size() >= FlaggedLine::kBytes; bytes = bytes.subspan(FlaggedLine::kBytes), ++line) {
    std::memcpy(line->data, bytes.data(), FlaggedLine::kBytes);
    line->sequence.store(sequence, std::memory_order_release);
  }
  if (bytes.empty()) return;
  std::memcpy(line->data, bytes.data(), bytes.size());
  line->sequence.store(sequence, std::memory_order_release);
}

/// Returns true if the lines of `bytes` bytes of call `sequence` are all there.
inline bool lines_are_here(const FlaggedLine* lines, std::size_t bytes, std::uint64_t sequence) {
  bool here = true;
  for (std::size_t i = 0; i < lines_of(bytes); ++i) here &= lines[i].has(sequence);
  return here;
}

/// Copies bytes [begin, begin + bytes) of the lines of call `sequence` to `to`. For each line, calls wait(here), which
/// blocks until here() returns true.
template <class Wait>
void read_lines(std::byte* to, const FlaggedLine* lines, std::size_t begin, std::size_t bytes, std::uint64_t sequence,
                const Wait& wait) {
  std::size_t offset = begin % FlaggedLine::kBytes;
  for (const auto* line = lines + begin / FlaggedLine::kBytes; bytes > 0; ++line, offset = 0) {
    if (!line->has(sequence)) wait([line, sequence] { return line->has(sequence); });
    const std::size_t here = std::min(bytes, FlaggedLine::kBytes - offset);
    if (here == FlaggedLine::kBytes) {
      std::memcpy(to, line->data, FlaggedLine::kBytes);
    } else {
      std::memcpy(to, line->data + offset, here);
    }
    to += here, bytes -= here;
  }
}

}  // namespace phalanx::shared_memory
