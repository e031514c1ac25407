// SPDX-License-Identifier: Apache-2.0
#include "framework/base/storage/crc32c.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/random.h"

namespace phalanx {
namespace {

std::string noise(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(mix(7, i));
  return text;
}

// Values from RFC 3720, appendix B.4.
TEST(Crc32c, MatchesTheStandard) {
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(crc32c("", 0), 0u);
}

TEST(Crc32c, IsTheSameWithAndWithoutTheInstruction) {
  const std::string text = noise(300);
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t bytes = 0; bytes < 280; ++bytes) {
      ASSERT_EQ(crc32c(text.data() + begin, bytes), crc32c_portable(text.data() + begin, bytes));
    }
  }
}

TEST(Crc32c, CanBeComputedInPieces) {
  const std::string text = noise(100);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto first = crc32c(text.data(), cut);
    ASSERT_EQ(crc32c(text.data() + cut, text.size() - cut, first), crc32c(text.data(), text.size()));
  }
}

TEST(Crc32c, DetectsEveryFlippedBit) {
  std::string text = noise(64);
  const auto whole = crc32c(text.data(), text.size());
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    ASSERT_NE(crc32c(text.data(), text.size()), whole) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
  }
}

}  // namespace
}  // namespace phalanx
