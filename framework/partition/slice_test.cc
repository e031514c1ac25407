// SPDX-License-Identifier: Apache-2.0
#include "framework/partition/slice.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>

namespace phalanx {
namespace {

const std::vector<Segment> kParameters{
    {"weight", {5, 2, 3}, 0, 30, 0}, {"bias", {5}, 32, 5, 0}, {"scale", {}, 48, 1, 0}};

TEST(Slice, ListsItsPartsOfParameters) {
  const Slice all{at::arange(64), at::zeros({64}), kParameters};
  const Slice some = part(all, 20, 14);
  EXPECT_EQ(some.values[0].item<std::int64_t>(), 20);
  ASSERT_EQ(some.segments.size(), 2u);
  EXPECT_EQ(some.segments[0].offset, 20);
  EXPECT_EQ(some.segments[0].count, 10);
  EXPECT_EQ(some.segments[1].begin, 12) << "the bias";
  EXPECT_EQ(some.segments[1].count, 2);
}

TEST(RowShards, AreWholeRowsAndCoverAllRows) {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    std::map<std::string, std::int64_t> next;
    for (int rank = 0; rank < ranks; ++rank) {
      std::int64_t end = 0;
      for (const auto& shard : row_shards(kParameters, rank, ranks)) {
        EXPECT_EQ(shard.begin, end) << "one after the other";
        EXPECT_EQ(shard.offset, next[shard.name]) << shard.name << " on rank " << rank << " of " << ranks;
        EXPECT_EQ(shard.count % (shard.name == "weight" ? 6 : 1), 0) << "rows";
        EXPECT_GT(shard.count, 0);
        next[shard.name] += shard.count;
        end = shard.end();
      }
    }
    EXPECT_EQ(next, (std::map<std::string, std::int64_t>{{"bias", 5}, {"scale", 1}, {"weight", 30}}));
  }
}

// An FSDP rank has such a shard of a parameter.
TEST(RowShards, AreViewsWithTheShapeOfTheirRows) {
  const at::Tensor weight = at::arange(30).view({5, 2, 3});
  const auto shard = row_shards(kParameters, 1, 2).at(0);
  const at::Tensor run = at::empty({shard.count}, weight.options());
  run.copy_(weight.slice(0, 3, 5).flatten());
  EXPECT_TRUE(at::equal(view_of(run, shard).view({-1, 2, 3}), weight.slice(0, 3, 5)));
  EXPECT_EQ(shard.offset, 18);
}

TEST(RowShards, RefuseWhatIsNotStoredInWholeRows) {
  EXPECT_THROW(row_shards({{"weight", {5, 2}, 0, 4, 0}}, 0, 2), std::invalid_argument);
  EXPECT_THROW(row_shards({{"weight", {5, 2}, 0, 10, 0, {1, 5}}}, 0, 2), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
