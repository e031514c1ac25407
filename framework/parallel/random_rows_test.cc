// SPDX-License-Identifier: Apache-2.0
#include "framework/parallel/random_rows.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <thread>

namespace phalanx {
namespace {

at::Tensor rows(std::int64_t count, std::int64_t width = 33) { return at::empty({count, width}); }

TEST(DropoutFactors, BelongToTheRowsOfTheGlobalBatch) {
  const at::Tensor whole = dropout_factors(rows(12), 0.4, 7, {.step = 3, .first_row = 20});
  const at::Tensor part = dropout_factors(rows(5), 0.4, 7, {.step = 3, .first_row = 24});
  EXPECT_TRUE(at::equal(whole.narrow(0, 4, 5), part));
}

TEST(DropoutFactors, DifferByStepLayerAndRow) {
  const at::Tensor one = dropout_factors(rows(2), 0.5, 7, {.step = 3, .first_row = 0});
  EXPECT_FALSE(at::equal(one[0], one[1]));
  EXPECT_FALSE(at::equal(one, dropout_factors(rows(2), 0.5, 8, {.step = 3, .first_row = 0})));
  EXPECT_FALSE(at::equal(one, dropout_factors(rows(2), 0.5, 7, {.step = 4, .first_row = 0})));
}

// In 200,000 draws, five standard deviations of the share are 0.3 % at a rate of 0.1.
TEST(DropoutFactors, DropTheRequestedShare) {
  for (const double rate : {0.0, 0.1, 0.5}) {
    const at::Tensor factors = dropout_factors(rows(200, 1000), rate, 1, {.step = 5, .first_row = 0});
    EXPECT_NEAR((factors == 0).to(at::kDouble).mean().item<double>(), rate, 0.006);
    EXPECT_NEAR(factors.mean().item<double>(), 1, 0.015);
  }
}

TEST(DropoutFactors, HaveTheDtypeOfWhatTheyAreFor) {
  EXPECT_EQ(dropout_factors(rows(2).to(at::kBFloat16), 0.5, 1, {}).scalar_type(), at::kBFloat16);
  EXPECT_EQ(dropout_factors(rows(0), 0.5, 1, {}).numel(), 0);
}

// A group of an odd number of elements ends in the middle of a random number.
TEST(DropoutFactors, OfAPartAreThoseOfTheWhole) {
  constexpr std::int64_t kRows = 3, kHeads = 5, kQueries = 6;
  const RandomKey key{.step = 3, .first_row = 20};
  for (const std::int64_t keys : {7, 8}) {
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
      const at::Tensor whole = dropout_factors(at::empty({kRows, kHeads, kQueries, keys}, dtype), 0.4, 7, key);
      for (std::int64_t head = 0; head < kHeads; ++head) {
        for (std::int64_t query = 0; query < kQueries; ++query) {
          const at::Tensor expected =
              whole.narrow(1, head, kHeads - head).narrow(2, query, kQueries - query).contiguous();
          const GroupsPart part{.group_elements = kQueries * keys, .first_group = head, .first_element = query * keys};
          EXPECT_TRUE(at::equal(dropout_factors(expected, part, 0.4, 7, key), expected)) << head << ' ' << query;
        }
      }
    }
  }
  EXPECT_EQ(dropout_factors(at::empty({0, 2, 3}), GroupsPart{.group_elements = 3}, 0.4, 7, key).numel(), 0);
}

TEST(RandomRows, BelongToOneThread) {
  EXPECT_FALSE(RandomRows::current());
  const RandomRows outer(RandomKey{.step = 1, .first_row = 2});
  {
    const RandomRows inner(RandomKey{.step = 3, .first_row = 4});
    EXPECT_EQ(RandomRows::current()->first_row, 4);
  }
  EXPECT_EQ(RandomRows::current()->first_row, 2);
  std::thread([] { EXPECT_FALSE(RandomRows::current()); }).join();
}

}  // namespace
}  // namespace phalanx
