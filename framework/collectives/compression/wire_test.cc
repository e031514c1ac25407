// SPDX-License-Identifier: Apache-2.0
// Tests the bytes that Wire counts.
#include "framework/collectives/compression/wire.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

TEST(AllReduceBytes, AreTheMinimumOfEachRank) {
  EXPECT_EQ(all_reduce_bytes(1000, 1), 0);
  EXPECT_EQ(all_reduce_bytes(1000, 2), 1000);
  EXPECT_EQ(all_reduce_bytes(1000, 4), 1500);
  EXPECT_EQ(all_reduce_bytes(1000, 3), 1334) << "rounded up";
  EXPECT_EQ(all_reduce_bytes(0, 5), 0);
  EXPECT_EQ(all_reduce_bytes(std::int64_t{1} << 40, 2), std::int64_t{1} << 40);
}

class WireOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, WireOf, ::testing::Range(1, 6));

TEST_P(WireOf, CountsWhatEachOperationSends) {
  const int ranks = GetParam();
  testing::run_ranks("inproc", ranks, [ranks](const CommunicatorPtr& group) {
    Wire wire(*group);
    const at::Tensor sum = at::full({10}, 1.0F);
    wire.all_reduce(sum, Reduction::kSum);
    EXPECT_TRUE(at::equal(sum, at::full({10}, static_cast<float>(ranks))));
    std::int64_t expected = all_reduce_bytes(40, ranks);
    EXPECT_EQ(wire.bytes(), expected);

    wire.all_gather(at::zeros({ranks * 3}), at::zeros({3}));
    expected += (ranks - 1) * 12;
    EXPECT_EQ(wire.bytes(), expected);

    // Rank r receives r + 1 bytes from each rank.
    std::vector<std::int64_t> sent;
    for (int rank = 0; rank < ranks; ++rank) sent.push_back(rank + 1);
    const std::vector<std::int64_t> received(ranks, group->rank() + 1);
    const auto total = ranks * (ranks + 1) / 2;
    wire.all_to_all(at::zeros({ranks * (group->rank() + 1)}, at::kByte), at::zeros({total}, at::kByte), received, sent);
    expected += total - (group->rank() + 1);
    EXPECT_EQ(wire.bytes(), expected);
  });
}

}  // namespace
}  // namespace phalanx
