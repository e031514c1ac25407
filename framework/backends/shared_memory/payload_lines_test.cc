// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/payload_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace phalanx::shared_memory {
namespace {

constexpr std::size_t kBytes = 5 * FlaggedLine::kBytes + 17;

std::vector<std::byte> numbered_bytes(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 7 + 1);
  return all;
}

struct Lines {
  std::array<FlaggedLine, lines_of(kBytes)> lines;
};

[[noreturn]] void never(const auto&) { throw std::logic_error("every line is there"); }

TEST(PayloadLines, HoldAnyRangeOfBytes) {
  const auto sent = numbered_bytes(kBytes);
  const auto shared = std::make_unique<Lines>();
  write_lines(shared->lines.data(), sent, 9);
  for (std::size_t begin = 0; begin <= kBytes; begin += 13) {
    for (std::size_t bytes = 0; begin + bytes <= kBytes; bytes += 11) {
      std::vector<std::byte> read(bytes);
      read_lines(read.data(), shared->lines.data(), begin, bytes, 9, [](const auto& here) { never(here); });
      ASSERT_TRUE(std::equal(read.begin(), read.end(), sent.begin() + static_cast<std::ptrdiff_t>(begin)))
          << bytes << " bytes from " << begin;
    }
  }
}

TEST(PayloadLines, AreThereOnceAllHaveTheNumberOfTheCall) {
  const auto sent = numbered_bytes(kBytes);
  const auto shared = std::make_unique<Lines>();
  write_lines(shared->lines.data(), sent, 9);
  EXPECT_TRUE(lines_are_here(shared->lines.data(), kBytes, 9));
  EXPECT_FALSE(lines_are_here(shared->lines.data(), kBytes, 10));
  EXPECT_TRUE(lines_are_here(shared->lines.data(), 0, 10)) << "no line is needed";
  write_lines(shared->lines.data(), std::span(sent).first(kBytes - 18), 10);
  EXPECT_FALSE(lines_are_here(shared->lines.data(), kBytes, 10)) << "the last line is still that of call 9";
  EXPECT_TRUE(lines_are_here(shared->lines.data(), kBytes - 18, 10));
}

// The reader waits for the line that is missing, and for no other.
TEST(PayloadLines, ReadersWaitForEachLine) {
  const auto sent = numbered_bytes(kBytes);
  const auto shared = std::make_unique<Lines>();
  constexpr std::size_t kHalf = 2 * FlaggedLine::kBytes;
  write_lines(shared->lines.data(), std::span(sent).first(kHalf), 3);
  std::vector<std::byte> read(kBytes);
  int waits = 0;
  read_lines(read.data(), shared->lines.data(), 0, kBytes, 3, [&](const auto& here) {
    ++waits;
    EXPECT_FALSE(here());
    write_lines(shared->lines.data() + 2, std::span(sent).subspan(kHalf), 3);
    EXPECT_TRUE(here());
  });
  EXPECT_EQ(waits, 1);
  EXPECT_EQ(read, sent);
}

// Numbers are compared as a whole, so the largest one is followed by a different one like every other.
TEST(PayloadLines, NumbersMayWrapAround) {
  const auto sent = numbered_bytes(100);
  const auto shared = std::make_unique<Lines>();
  for (std::uint64_t call = UINT64_MAX - 1; call != 2; ++call) {
    EXPECT_FALSE(lines_are_here(shared->lines.data(), sent.size(), call)) << call;
    write_lines(shared->lines.data(), sent, call);
    EXPECT_TRUE(lines_are_here(shared->lines.data(), sent.size(), call)) << call;
    EXPECT_FALSE(lines_are_here(shared->lines.data(), sent.size(), call + 1)) << call;
  }
}

}  // namespace
}  // namespace phalanx::shared_memory
