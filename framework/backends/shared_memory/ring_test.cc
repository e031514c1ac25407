// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "framework/backends/shared_memory/schedule_point.h"
#include "framework/testing/fuzz/schedule.h"

namespace phalanx::shared_memory {
namespace {

constexpr int kRingRanks = 3;

// The ring of rank 0.
struct Shared {
  Progress filled, taken[kRingRanks];
  std::unique_ptr<std::byte[]> data = std::make_unique<std::byte[]>(kRingBytes);

  RingWriter writer() { return {0, kRingRanks, filled, taken, data.get()}; }
  RingReader reader(int rank) { return {filled, taken[rank], data.get()}; }
};

bool nobody_has_finished(int, std::uint64_t) { return false; }

void write(RingWriter& ring, std::uint64_t value, int reader = kAllReaders, std::uint64_t sequence = 1) {
  std::memcpy(ring.next(), &value, sizeof(value));
  ring.publish(sequence, reader);
}

std::uint64_t read(const RingReader& ring, std::uint64_t number) {
  std::uint64_t value = 0;
  std::memcpy(&value, ring.piece(number), sizeof(value));
  return value;
}

TEST(Ring, APieceIsThereOnceItIsPublished) {
  const auto shared = std::make_unique<Shared>();
  auto writer = shared->writer();
  auto reader = shared->reader(1);
  EXPECT_EQ(writer.position(), 0u);
  EXPECT_FALSE(reader.has(0));
  write(writer, 70);
  EXPECT_EQ(writer.position(), 1u);
  EXPECT_TRUE(reader.has(0));
  EXPECT_FALSE(reader.has(1));
  EXPECT_EQ(read(reader, 0), 70u);
}

TEST(Ring, HasRoomUntilItIsFullAndAgainOnceAllReadersHaveTakenAPiece) {
  const auto shared = std::make_unique<Shared>();
  auto writer = shared->writer();
  auto one = shared->reader(1), other = shared->reader(2);
  for (std::uint64_t i = 0; i < kPieces; ++i) {
    ASSERT_TRUE(writer.has_room(nobody_has_finished)) << i;
    write(writer, i);
  }
  EXPECT_FALSE(writer.has_room(nobody_has_finished));
  EXPECT_TRUE(writer.is_awaited(1) && writer.is_awaited(2));
  one.take(0);
  EXPECT_FALSE(writer.has_room(nobody_has_finished));
  EXPECT_FALSE(writer.is_awaited(1));
  other.take(5);  // and all before
  EXPECT_TRUE(writer.has_room(nobody_has_finished));
  write(writer, 1000);
  EXPECT_FALSE(writer.has_room(nobody_has_finished)) << "rank 1 has not taken the second piece";
  EXPECT_EQ(read(other, kPieces), 1000u) << "in the slot of the first piece";
}

TEST(Ring, OnlyTheReaderOfAPieceKeepsItsSlot) {
  const auto shared = std::make_unique<Shared>();
  auto writer = shared->writer();
  auto two = shared->reader(2);
  for (std::uint64_t i = 0; i < kPieces; ++i) write(writer, i, /*reader=*/2);
  EXPECT_FALSE(writer.has_room(nobody_has_finished));
  EXPECT_FALSE(writer.is_awaited(1));
  two.take(0);
  EXPECT_TRUE(writer.has_room(nobody_has_finished));
}

// Readers that end an operation without taking its pieces, because they called another one, free them by going on.
TEST(Ring, AnOperationThatIsFinishedKeepsNoSlot) {
  const auto shared = std::make_unique<Shared>();
  auto writer = shared->writer();
  for (std::uint64_t i = 0; i < kPieces; ++i) write(writer, i, kAllReaders, /*sequence=*/40 + i);
  std::vector<std::pair<int, std::uint64_t>> asked;
  EXPECT_TRUE(writer.has_room([&](int rank, std::uint64_t sequence) {
    asked.emplace_back(rank, sequence);
    return true;
  }));
  EXPECT_EQ(asked, (std::vector<std::pair<int, std::uint64_t>>{{1, 40}, {2, 40}}));
  EXPECT_FALSE(writer.has_room([](int rank, std::uint64_t) { return rank == 1; }));
}

// Pieces are numbered on over all rounds of the ring, whatever the ranks' order.
TEST(Ring, EveryReaderGetsEveryPieceInAnyInterleaving) {
  constexpr std::uint64_t kNumbers = 5 * kPieces + 3;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto shared = std::make_unique<Shared>();
    testing::Schedule schedule(seed, kRingRanks, std::nullopt, [] { ADD_FAILURE() << "a rank hangs"; });
    std::vector<std::jthread> ranks;
    ranks.emplace_back([&] {
      schedule.enter(0);
      auto ring = shared->writer();
      for (std::uint64_t i = 0; i < kNumbers; ++i) {
        while (!ring.has_room(nobody_has_finished)) schedule_point();
        write(ring, seed * 100'000 + i);
        schedule.progress(false);
      }
      schedule.leave();
    });
    for (int rank = 1; rank < kRingRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        schedule.enter(rank);
        auto ring = shared->reader(rank);
        for (std::uint64_t i = 0; i < kNumbers; ++i) {
          while (!ring.has(i)) schedule_point();
          EXPECT_EQ(read(ring, i), seed * 100'000 + i) << "seed " << seed << ", rank " << rank;
          ring.take(i);
        }
        schedule.leave();
      });
    }
    ranks.clear();
    EXPECT_EQ(shared->filled.pieces.load(), kNumbers);
  }
}

}  // namespace
}  // namespace phalanx::shared_memory
