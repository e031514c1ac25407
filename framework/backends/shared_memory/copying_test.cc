// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "framework/backends/shared_memory/bulk_copy.h"
#include "framework/backends/shared_memory/piece_writer.h"

namespace phalanx::shared_memory {
namespace {

std::vector<std::byte> numbered(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(i * 7 + i / 251);
  return all;
}

TEST(StreamCopy, MovesEveryByteAndNoOther) {
  const auto source = numbered(1000);
  for (const std::size_t to : {0, 1, 63, 64}) {
    for (const std::size_t from : {0, 3}) {
      for (const std::size_t bytes : {0, 1, 63, 64, 65, 500}) {
        std::vector<std::byte> target(700), expected(700);
        std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(to));
        stream_copy(target.data() + to, source.data() + from, bytes);
        ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
      }
    }
  }
}

TEST(PieceWriter, WritesTheSameInEitherWay) {
  const auto source = numbered(64 << 10);
  PieceWriter writer;
  for (int i = 0; i < 600; ++i) {  // covers several trials of ordinary stores
    const std::size_t bytes = i % 3 == 0 ? 0 : source.size() / (1 + i % 17);
    std::vector<std::byte> target(source.size());
    writer.write(target.data(), source.data(), bytes);
    ASSERT_TRUE(std::equal(target.begin(), target.begin() + static_cast<std::ptrdiff_t>(bytes), source.begin())) << i;
    ASSERT_TRUE(bytes == target.size() || target[bytes] == std::byte{}) << i;
  }
}

TEST(BulkCopy, MovesTheSameWithinTheCachesAndPastThem) {
  const auto source = numbered(10'000);
  for (const std::size_t touched : {std::size_t{0}, cache_bytes(), cache_bytes() + 1}) {
    std::vector<std::byte> target(source.size());
    BulkCopy{touched}(target.data() + 1, source.data(), source.size() - 1);
    EXPECT_TRUE(std::equal(target.begin() + 1, target.end(), source.begin())) << touched;
    BulkCopy{touched}(target.data(), target.data(), target.size());
    BulkCopy{touched}(target.data(), nullptr, 0);
  }
}

TEST(BulkCopy, FindsAPlausibleCacheSize) {
  EXPECT_GE(cache_bytes(), std::size_t{64} << 10);
  EXPECT_LE(cache_bytes(), std::size_t{4} << 30);
}

}  // namespace
}  // namespace phalanx::shared_memory
