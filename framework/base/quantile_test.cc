// SPDX-License-Identifier: Apache-2.0
#include "framework/base/quantile.h"

#include <gtest/gtest.h>

#include <vector>

namespace phalanx {
namespace {

TEST(Quantile, LiesBetweenTheNearestValues) {
  const std::vector values{4.0, 1.0, 3.0, 2.0, 5.0};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 0.9), 4.6);
  EXPECT_EQ(quantile(values, 1), 5);
}

TEST(Quantile, OfOneValueIsThisValue) {
  const std::vector values{7.0};
  for (const double q : {0.0, 0.3, 1.0}) EXPECT_EQ(quantile(values, q), 7);
}

TEST(Median, IsTheMeanOfTheMiddleTwoOfAnEvenNumber) {
  EXPECT_EQ(median(std::vector{4.0, 1.0, 3.0, 2.0}), 2.5);
  EXPECT_EQ(median(std::vector{4.0, 1.0, 3.0}), 3);
}

}  // namespace
}  // namespace phalanx
