// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "framework/backends/shared_memory/bulk_copy.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace phalanx::shared_memory {

#if defined(__x86_64__)

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t head = std::min(bytes, (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine);
  std::memcpy(to, from, head);
  const std::size_t lines = (bytes - head) / kLine;
  auto* target = reinterpret_cast<__m128i*>(to + head);
  const auto* source = reinterpret_cast<const __m128i*>(from + head);
  for (std::size_t line = 0; line < lines; ++line, source += 4, target += 4) {
    const __m128i a = _mm_loadu_si128(source), b = _mm_loadu_si128(source + 1);
    const __m128i c = _mm_loadu_si128(source + 2), d = _mm_loadu_si128(source + 3);
    _mm_stream_si128(target, a);
    _mm_stream_si128(target + 1, b);
    _mm_stream_si128(target + 2, c);
    _mm_stream_si128(target + 3, d);
  }
  _mm_sfence();
  const std::size_t moved = head + lines * kLine;
  std::memcpy(to + moved, from + moved, bytes - moved);
}

#else

void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

#endif

}  // namespace phalanx::shared_memory
