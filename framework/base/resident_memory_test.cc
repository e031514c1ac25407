// SPDX-License-Identifier: Apache-2.0
#include "framework/base/resident_memory.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace phalanx {
namespace {

TEST(PeakResidentBytes, CountsMemoryThatWasFreedAgain) {
  constexpr std::size_t kBytes = 64 << 20;
  const auto before = peak_resident_bytes();
  ASSERT_GT(before, 0);
  {
    const std::vector<char> touched(kBytes, 1);
    ASSERT_EQ(touched.back(), 1);
  }
  const auto after = peak_resident_bytes();
  EXPECT_GE(after, static_cast<std::int64_t>(kBytes));
  EXPECT_GE(after, before);
}

}  // namespace
}  // namespace phalanx
