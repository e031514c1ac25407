// SPDX-License-Identifier: Apache-2.0
#include "engine/strategies/canonical_sum.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

// Returns terms of very different sizes, so that a different order of addition gives different bits.
std::vector<at::Tensor> terms(int shards, std::int64_t elements) {
  at::manual_seed(7);
  std::vector<at::Tensor> all;
  for (int shard = 0; shard < shards; ++shard) {
    all.push_back(at::randn({elements}) * at::randn({elements}).mul(6).exp());
  }
  return all;
}

at::Tensor canonical_sum(const std::vector<at::Tensor>& all, int ranks) {
  at::Tensor result;
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& group) {
    CanonicalSum sum(group, static_cast<int>(all.size()));
    for (int shard = sum.first(); shard < sum.last(); ++shard) sum.add(shard, all[shard]);
    const at::Tensor total = at::empty_like(all[0]);
    sum.finish(total);
    if (group->rank() == group->size() - 1) result = total;
  });
  return result;
}

class Canonical : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Shards, Canonical, ::testing::Values(1, 2, 4, 6, 8, 12));

TEST_P(Canonical, SumsHaveTheSameBitsOnAnyNumberOfRanks) {
  for (const std::int64_t elements : {1, 3, 1000}) {
    const auto all = terms(GetParam(), elements);
    const at::Tensor alone = canonical_sum(all, 1);
    at::Tensor exact = at::zeros({elements}, at::kDouble);
    for (const auto& term : all) exact += term;
    EXPECT_TRUE(at::allclose(alone.to(at::kDouble), exact, 1e-4, 1e-4));
    for (int ranks = 2; ranks <= GetParam(); ++ranks) {
      if (GetParam() % ranks != 0) continue;
      EXPECT_TRUE(at::equal(canonical_sum(all, ranks), alone)) << elements << " elements, " << ranks << " ranks";
    }
  }
}

// Shows that the order matters, without which the test above would prove nothing.
TEST(CanonicalSum, AnotherOrderGivesOtherBits) {
  const auto all = terms(8, 1000);
  at::Tensor in_order = all[0].clone();
  for (std::size_t i = 1; i < all.size(); ++i) in_order += all[i];
  EXPECT_FALSE(at::equal(in_order, canonical_sum(all, 1)));
}

TEST(CanonicalSum, StartsFromZeroAfterFinish) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    CanonicalSum sum(group, 4);
    const at::Tensor total = at::empty({5});
    for (int round = 1; round < 4; ++round) {
      for (int shard = sum.first(); shard < sum.last(); ++shard) sum.add(shard, at::ones({5}) * round);
      sum.finish(total);
      EXPECT_EQ(total[4].item<float>(), 4.0f * round);
    }
  });
}

TEST(CanonicalSum, RefusesShardsThatCannotBeDividedAmongRanks) {
  run_ranks("inproc", 3,
            [](const CommunicatorPtr& group) { EXPECT_THROW(CanonicalSum(group, 4), std::invalid_argument); });
}

}  // namespace
}  // namespace phalanx
