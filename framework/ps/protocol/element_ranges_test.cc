// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/protocol/element_ranges.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <vector>

#include "framework/base/error.h"

namespace phalanx::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ElementRanges, AreRelativeToTheBeginningOfTheirPart) {
  const ElementRanges ranges{{0, 4}, {6, 8}, {9, 20}};
  EXPECT_THAT(ranges_within(ranges, 2, 10), ElementsAre(ElementRange{0, 2}, ElementRange{4, 6}, ElementRange{7, 10}));
  EXPECT_THAT(ranges_within(ranges, 4, 2), IsEmpty());
  EXPECT_THAT(ranges_within(ranges, 3, 0), IsEmpty());
}

TEST(ElementRanges, CanBeFoundByTheirZeros) {
  EXPECT_THAT(ranges_of_zeros(at::tensor({0, 0, 1, 0, 1, 1}, at::kByte)),
              ElementsAre(ElementRange{0, 2}, ElementRange{3, 4}));
  EXPECT_THAT(ranges_of_zeros(at::tensor({1, 0}, at::kByte)), ElementsAre(ElementRange{1, 2}));
  EXPECT_THAT(ranges_of_zeros(at::tensor({1, 1}, at::kByte)), IsEmpty());
  EXPECT_THAT(ranges_of_zeros(at::zeros({0}, at::kByte)), IsEmpty());
}

TEST(ElementRanges, AreParsedFromText) {
  const ElementRanges ranges{{0, 4}, {4, 8}, {9, 20}};
  EXPECT_EQ(ranges_of_text(to_text(ranges), 20), ranges);
  EXPECT_THAT(ranges_of_text(to_text({}), 0), IsEmpty());
}

TEST(ElementRanges, AreRefusedIfInvalid) {
  const std::vector<ElementRanges> wrong{{{3, 5}}, {{-1, 2}}, {{2, 2}}, {{2, 1}}, {{0, 3}, {2, 4}}, {{2, 3}, {0, 1}}};
  for (const auto& ranges : wrong) EXPECT_THROW(ranges_of_text(to_text(ranges), 4), Error) << ranges[0].begin;
  EXPECT_THROW(ranges_of_text(to_text({{0, 1}}).substr(1), 4), Error);
}

TEST(SavedElements, AreRestoredInEachTensor) {
  const at::Tensor a = at::arange(6), b = at::arange(6, at::kDouble);
  const SavedElements kept({{1, 3}, {5, 6}}, {a, b});
  a.fill_(9), b.fill_(9);
  kept.restore();
  EXPECT_TRUE(a.equal(at::tensor({9, 1, 2, 9, 9, 5}, at::kLong)));
  EXPECT_TRUE(b.equal(at::tensor({9, 1, 2, 9, 9, 5}, at::kDouble)));
}

}  // namespace
}  // namespace phalanx::ps
