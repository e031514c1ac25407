// SPDX-License-Identifier: Apache-2.0
#include "launch/stall/stall.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace phalanx {
namespace {

WaitNote in_all_reduce(int rank, double since = 0) {
  return {.rank = rank, .operation = "all_reduce #7 of world", .since = since};
}
WaitNote in_recv(int rank, int peer) {
  return {.rank = rank, .operation = "recv #3 of world", .peer = peer, .since = 0};
}

// Returns the lines that 4 ranks print about these waits after 20.5 s.
std::vector<std::string> reported(std::vector<WaitNote> notes, std::vector<int> visible = {0, 1, 2, 3}) {
  const Waits waits{
      .notes = std::move(notes), .visible = std::move(visible), .size = 4, .now = 20.5, .report_after = 18};
  std::vector<std::string> lines;
  for (int rank = 0; rank < waits.size; ++rank) {
    if (const auto line = stall_message(waits, rank)) lines.push_back(*line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(Stall, IsReportedOnceWithTheRankThatDoesNotWait) {
  EXPECT_EQ(reported({in_all_reduce(0), in_all_reduce(1), in_all_reduce(3)}),
            Lines{"rank 0 has waited 20 s in all_reduce #7 of world for rank 2"});
  EXPECT_EQ(reported({in_all_reduce(1), in_all_reduce(2)}),
            Lines{"rank 1 has waited 20 s in all_reduce #7 of world for ranks 0, 3"});
}

TEST(Stall, IsReportedByARankThatHasWaitedLongEnough) {
  EXPECT_EQ(reported({in_all_reduce(0, 15), in_all_reduce(1), in_all_reduce(3)}),
            Lines{"rank 1 has waited 20 s in all_reduce #7 of world for rank 2"});
  EXPECT_EQ(reported({in_all_reduce(0, 15), in_all_reduce(1, 5)}), Lines{});
}

TEST(Stall, IsNotReportedTwice) {
  auto first = in_all_reduce(0);
  first.reported = true;
  EXPECT_EQ(reported({first, in_all_reduce(1)}), Lines{});
}

TEST(Stall, NamesThePeerOfAMessageButNoRankThatComputes) {
  EXPECT_EQ(reported({in_recv(3, 2)}), Lines{"rank 3 has waited 20 s in recv #3 of world for rank 2"});
}

TEST(Stall, NamesTheEndOfAChainOfMessages) {
  EXPECT_EQ(reported({in_recv(0, 3), in_recv(1, 0), in_recv(3, 2)}),
            Lines{"rank 3 has waited 20 s in recv #3 of world for rank 2"});
}

TEST(Stall, NamesTheOperationOfEachRankIfAllWaitForEachOther) {
  auto barrier = in_all_reduce(2);
  barrier.operation = "barrier #8 of world";
  EXPECT_EQ(reported({in_all_reduce(0), in_all_reduce(1), barrier, in_all_reduce(3)}),
            Lines{"all ranks wait for each other, rank 0 for 20 s: rank 0 in all_reduce #7 of world, rank 1 in "
                  "all_reduce #7 of world, rank 2 in barrier #8 of world, rank 3 in all_reduce #7 of world"});
}

TEST(Stall, BlamesNoRankIfAllAreInOneOperation) {
  EXPECT_EQ(reported({in_all_reduce(0), in_all_reduce(1), in_all_reduce(2), in_all_reduce(3)}),
            Lines{"all ranks have been in all_reduce #7 of world for 20 s"});
}

TEST(Stall, BlamesNoRankThatCannotBeSeen) {
  EXPECT_EQ(reported({in_all_reduce(0), in_all_reduce(1)}, {0, 1}),
            Lines{"rank 0 has waited 20 s in all_reduce #7 of world for ranks of other hosts"});
}

}  // namespace
}  // namespace phalanx
