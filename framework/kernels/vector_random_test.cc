// SPDX-License-Identifier: Apache-2.0
#include "framework/kernels/vector_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace phalanx::vector {
namespace {

// Returns number `counter` of a stream, computed singly.
std::uint64_t split_mix(std::uint64_t stream, std::uint64_t counter) {
  std::uint64_t z = stream + (counter + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

TEST(DropoutFactors, AreThoseOfSplitMix64) {
  constexpr float kKept = 1.25F;
  for (const double rate : {0.0, 0.1, 0.5, 0.999999, 0.9999999999}) {
    const auto dropped_below = static_cast<std::uint64_t>(std::llround(rate * 0x1p32));
    for (std::int64_t count = 0; count < 70; ++count) {
      const std::uint64_t stream = static_cast<std::uint64_t>(count) * 0x123456789abcdef1;
      std::vector<float> factors(count + 1, -1.0F), expected(count + 1, -1.0F);
      for (std::int64_t i = 0; i < count; ++i) {
        const auto both = split_mix(stream, static_cast<std::uint64_t>(i) / 2);
        expected[i] = (i % 2 == 0 ? both & 0xffffffff : both >> 32) < dropped_below ? 0.0F : kKept;
      }
      dropout_factors(factors.data(), 0, count, stream, dropped_below, kKept);
      EXPECT_EQ(factors, expected) << rate << " " << count;
    }
  }
}

TEST(DropoutFactors, CanBeginAtAnyElement) {
  constexpr std::int64_t kAll = 90;
  constexpr std::uint64_t kStream = 0x123456789abcdef1, kDroppedBelow = 0x60000000;
  std::vector<float> all(kAll);
  dropout_factors(all.data(), 0, kAll, kStream, kDroppedBelow, 2.0F);
  for (std::int64_t first = 0; first < 36; ++first) {
    for (std::int64_t count = 0; first + count <= kAll; ++count) {
      std::vector<float> part(count + 1, -1.0F), expected(all.begin() + first, all.begin() + first + count);
      expected.push_back(-1.0F);  // the value after the part remains
      dropout_factors(part.data(), first, count, kStream, kDroppedBelow, 2.0F);
      ASSERT_EQ(part, expected) << first << ' ' << count;
    }
  }
}

}  // namespace
}  // namespace phalanx::vector
