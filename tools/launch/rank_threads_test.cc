#include "tools/launch/rank_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace phalanx {
namespace {

TEST(RankThreads, HaveAPlaceEachOnOneHost) {
  std::vector<Place> places(3);
  run_rank_threads(3, [&](const Place& place) { places.at(static_cast<std::size_t>(place.rank)) = place; });
  for (int rank = 0; rank < 3; ++rank) {
    const Place& place = places[static_cast<std::size_t>(rank)];
    EXPECT_EQ(place.rank, rank);
    EXPECT_EQ(place.local_rank, rank);
    EXPECT_EQ(place.size, 3);
    EXPECT_TRUE(place.one_host());
  }
}

TEST(RankThreads, ThrowWhatOneHasThrownWhenAllHaveEnded) {
  std::atomic<int> ended = 0;
  try {
    run_rank_threads(8, [&](const Place& place) {
      ++ended;
      if (place.rank == 1) throw std::runtime_error("the cause");
    });
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "the cause");
  }
  EXPECT_EQ(ended, 8);
}

}  // namespace
}  // namespace phalanx
