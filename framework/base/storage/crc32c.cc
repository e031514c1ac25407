// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/crc32c.h"

#include <array>
#include <cstring>

namespace phalanx {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // in reflected bit order

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(const unsigned char* next, std::size_t bytes,
                                                               std::uint32_t before) {
  std::uint64_t crc = ~before;
  for (; bytes >= 8; bytes -= 8, next += 8) {
    std::uint64_t word;
    std::memcpy(&word, next, 8);
    crc = __builtin_ia32_crc32di(crc, word);
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (; bytes > 0; --bytes) rest = __builtin_ia32_crc32qi(rest, *next++);
  return ~rest;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(const void* data, std::size_t bytes, std::uint32_t before) {
  static constexpr auto kTable = make_table();
  const auto* next = static_cast<const unsigned char*>(data);
  std::uint32_t crc = ~before;
  for (; bytes > 0; --bytes) crc = (crc >> 8) ^ kTable[(crc ^ *next++) & 0xff];
  return ~crc;
}

std::uint32_t crc32c(const void* data, std::size_t bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return by_instruction(static_cast<const unsigned char*>(data), bytes, before);
#endif
  return crc32c_portable(data, bytes, before);
}

}  // namespace phalanx
