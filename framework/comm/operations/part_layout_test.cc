// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/part_layout.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

namespace phalanx {
namespace {

using Vector = std::vector<std::int64_t>;

TEST(PartLayout, PartsOfGivenCountsFollowEachOther) {
  const PartLayout parts(Vector{2, 0, 3}, 3, 0);
  EXPECT_EQ(parts.ranks(), 3);
  EXPECT_EQ(parts.total(), 5);
  EXPECT_EQ(parts.begin(1), 2);
  EXPECT_EQ(parts.count(1), 0);
  EXPECT_EQ(parts.begin(2), 2);
  EXPECT_EQ(parts.count(2), 3);
}

TEST(PartLayout, PartsWithoutCountsAreEqual) {
  const PartLayout parts({}, 4, 12);
  EXPECT_EQ(parts.total(), 12);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(parts.begin(rank), 3 * rank);
    EXPECT_EQ(parts.count(rank), 3);
  }
}

TEST(PartLayout, PartsAreViews) {
  const auto tensor = at::zeros({5, 2}).set_requires_grad(true);
  const auto part = PartLayout(Vector{4, 6}, 2, 0).of(tensor, 1);
  EXPECT_EQ(part.sizes(), (Vector{6}));
  EXPECT_EQ(part.data_ptr<float>(), tensor.data_ptr<float>() + 4);
  EXPECT_FALSE(part.requires_grad());
  const auto run = elements_of(at::arange(10), 3, 4);
  EXPECT_TRUE(at::equal(run, at::arange(3, 7)));
}

}  // namespace
}  // namespace phalanx
