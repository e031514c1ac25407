// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/operation_counts.h"

#include <gmock/gmock.h>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;

constexpr AxisBits kData = 1, kPipe = 2, kTensor = 4;

TEST(OperationCounts, AxesOfASetAreThoseWithMoreThanOneRank) {
  const MeshShape shape{{2, 1, 3, 1, 1}};
  EXPECT_EQ(axes_of(shape, AxisSet::all()), kData | kTensor);
  EXPECT_EQ(axes_of(shape, {Axis::kPipe, Axis::kTensor}), kTensor);
  EXPECT_EQ(axes_of(shape, {Axis::kPipe}), 0U);
}

TEST(OperationCounts, AddsOperationsOfAKindAndNoneOfASingleRank) {
  OperationCounts counts;
  add(counts, 0, Op::kAllReduce, 8);
  EXPECT_TRUE(counts.empty());
  add(counts, kData, Op::kAllReduce, 8);
  add(counts, kData, Op::kAllReduce, 16);
  add(counts, kPipe, Op::kSend, 4);
  EXPECT_EQ(counts.at({kData, Op::kAllReduce}), (OperationCount{.count = 2, .bytes = 24}));
  EXPECT_EQ(counts.at({kPipe, Op::kSend}), (OperationCount{.count = 1, .bytes = 4}));
}

TEST(OperationCounts, AddsCountsOfTheSameKind) {
  OperationCounts counts{{{kData, Op::kAllReduce}, {1, 8}}};
  add(counts, {{{kData, Op::kAllReduce}, {2, 32}}, {{kTensor, Op::kAllGather}, {1, 64}}});
  EXPECT_EQ(counts.at({kData, Op::kAllReduce}), (OperationCount{3, 40}));
  EXPECT_EQ(counts.at({kTensor, Op::kAllGather}), (OperationCount{1, 64}));
}

TEST(OperationCounts, AreSummedOverRanks) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    OperationCounts counts{{{kData, Op::kAllReduce}, {1, 8}}};
    if (world->rank() == 1) add(counts, kTensor, Op::kAllToAll, 100);
    const OperationCounts all{{{kData, Op::kAllReduce}, {2, 16}}, {{kTensor, Op::kAllToAll}, {1, 100}}};
    EXPECT_EQ(over_ranks(counts, *world), all);
  });
}

TEST(OperationCounts, NamesDifferences) {
  const MeshShape shape{{2, 1, 1, 1, 1}};
  const OperationCounts planned{{{1, Op::kAllReduce}, {2, 80}}}, seen{{{1, Op::kAllReduce}, {3, 90}}};
  EXPECT_EQ(differences(shape, planned, planned), "");
  EXPECT_EQ(differences(shape, planned, seen),
            "all_reduce along data (2 ranks): planned 2 of 80 bytes in all, seen 3 of 90\n");
  EXPECT_THAT(differences(shape, {}, seen), HasSubstr("planned 0"));
}

}  // namespace
}  // namespace phalanx
