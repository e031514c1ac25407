// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "engine/strategies/sharded/shards.h"
#include "engine/testing/strategy.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

Slice bucket_of(std::vector<std::int64_t> sizes) {
  const auto elements = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  Slice slice{at::full({elements}, 0.0), at::full({elements}, 0.0)};
  std::int64_t begin = 0;
  for (const auto size : sizes) {
    slice.segments.push_back({std::to_string(slice.segments.size()), {size}, begin, size, 0});
    begin += size;
  }
  return slice;
}

TEST(Shards, CoverABucketOnceNearlyEquallyForAnyNumberOfRanks) {
  for (int ranks = 1; ranks <= 40; ++ranks) {
    for (const std::int64_t elements : {0, 1, 15, 16, 17, 1000, 12345}) {
      const Shards shards(bucket_of({elements}), ranks, Cut::kAnywhere);
      std::int64_t next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(shards.begin(rank), next);
        EXPECT_LE(shards.count(rank), elements / ranks + 32);
        EXPECT_TRUE(next == elements || next % 16 == 0);
        next += shards.count(rank);
      }
      EXPECT_EQ(next, elements) << ranks << " ranks";
    }
  }
}

TEST(Shards, BetweenParametersTheyHoldWholeParameters) {
  const auto bucket = bucket_of({100, 10, 90, 7, 300});
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const Shards shards(bucket, ranks, Cut::kBetweenParameters);
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(shards.begin(rank), next);
      for (const auto& segment : cut(bucket.segments, shards.begin(rank), shards.count(rank))) {
        EXPECT_TRUE(segment.whole());
      }
      next += shards.count(rank);
    }
    EXPECT_EQ(next, 507);
  }
  EXPECT_EQ(Shards(bucket, 2, Cut::kBetweenParameters).count(0), 207) << "the nearest border to 253";
}

TEST(Shards, DoNotCutParametersThatDoNotLieRowByRow) {
  auto bucket = bucket_of({100, 300});
  bucket.segments[1].strides = {1};
  const Shards shards(bucket, 2, Cut::kAnywhere);
  EXPECT_EQ(shards.count(0), 100);
  EXPECT_EQ(shards.count(1), 300);
}

class Sharded : public ::testing::TestWithParam<int> {
 protected:
  static FlatParameters make_parameters(Communicator& group) {
    std::vector<at::Tensor> parameters;
    for (const std::int64_t size : {7, 300, 1, 20}) {
      parameters.push_back(at::full({size}, static_cast<float>(group.rank())).requires_grad_());
    }
    return {parameters, group, 200};
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Sharded, ::testing::Values(1, 2, 3, 4, 5));

TEST_P(Sharded, EveryElementIsUpdatedByOneRankWithTheMeanGradientAndReachesAll) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters(*group);
    for (const auto cut : {Cut::kAnywhere, Cut::kBetweenParameters}) {
      const auto strategy = testing::make_strategy("sharded", group);
      const auto slices = strategy->attach(parameters, cut);
      at::Tensor elements = at::full({1}, 0.0, at::kDouble);
      for (const auto& slice : slices) elements += slice.values.numel();
      strategy->sum_over_slices(elements);
      EXPECT_EQ(elements.item<double>(), 16 + 304 + 16 + 32) << "up to the next cache lines";
      for (const auto& bucket : parameters.buckets()) {
        bucket.values.zero_();
        bucket.gradients.copy_(at::arange(bucket.gradients.numel()) + group->rank());
      }
      strategy->before_update(0);
      for (const auto& slice : slices) slice.values.copy_(slice.gradients), slice.gradients.zero_();
      strategy->after_update(0);
      for (const auto& bucket : parameters.buckets()) {
        const at::Tensor mean = at::arange(bucket.values.numel()).to(at::kFloat) + (group->size() - 1) / 2.0;
        EXPECT_TRUE(at::allclose(bucket.values, mean));
        EXPECT_TRUE(at::equal(bucket.gradients, at::full_like(bucket.gradients, 0))) << "ready for the next backward";
      }
    }
  });
}

TEST_P(Sharded, SlicesNameThePartsOfParametersInThem) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto parameters = make_parameters(*group);
    const auto slices = testing::make_strategy("sharded", group)->attach(parameters, Cut::kAnywhere);
    std::int64_t named = 0;
    for (const auto& slice : slices) {
      std::int64_t next = 0;
      for (const auto& segment : slice.segments) {
        EXPECT_GE(segment.begin, next);
        EXPECT_LT(segment.begin, next + 16) << "no more between parameters than a cache line takes";
        next = segment.end();
        named += segment.count;
      }
      EXPECT_LE(next, slice.values.numel());
      EXPECT_GT(next + 16, slice.values.numel());
    }
    const at::Tensor of_all = at::full({1}, named);
    group->all_reduce(of_all, Reduction::kSum).wait();
    EXPECT_EQ(of_all.item<std::int64_t>(), 7 + 300 + 1 + 20);
  });
}

}  // namespace
}  // namespace phalanx
