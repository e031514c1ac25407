// SPDX-License-Identifier: Apache-2.0
#include "framework/base/checked_product.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace phalanx {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

using Sizes = std::vector<std::int64_t>;

TEST(CheckedProduct, MultipliesSizesAndTheFactor) {
  EXPECT_EQ(checked_product({}), 1);
  EXPECT_EQ(checked_product(Sizes{2, 3, 5}), 30);
  EXPECT_EQ(checked_product(Sizes{2, 3, 5}, 4), 120);
  EXPECT_EQ(checked_product(Sizes{7, 0, 3}, 8), 0);
  EXPECT_EQ(checked_product(Sizes{kMost, 1}), kMost);
  EXPECT_EQ(checked_product(Sizes{std::int64_t{1} << 62}, 1), std::int64_t{1} << 62);
}

TEST(CheckedProduct, IsEmptyOnOverflow) {
  for (const Sizes& sizes : {Sizes{kMost, 2}, Sizes{std::int64_t{1} << 32, std::int64_t{1} << 32},
                             Sizes{std::int64_t{1} << 62, 4}, Sizes{1 << 16, 1 << 16, 1 << 16, 1 << 16}}) {
    EXPECT_FALSE(checked_product(sizes).has_value());
  }
  EXPECT_FALSE(checked_product(Sizes{std::int64_t{1} << 60}, 8).has_value());
}

TEST(CheckedProduct, ASizeOf0HidesNoOverflow) {
  EXPECT_FALSE(checked_product(Sizes{0, std::int64_t{1} << 62, 4}).has_value());
  EXPECT_FALSE(checked_product(Sizes{std::int64_t{1} << 62, 4, 0}).has_value());
}

TEST(CheckedProduct, IsEmptyForNegativeSizes) {
  EXPECT_FALSE(checked_product(Sizes{-1}).has_value());
  EXPECT_FALSE(checked_product(Sizes{0, -1}).has_value());
  EXPECT_FALSE(checked_product(Sizes{-2, -3}).has_value());
}

}  // namespace
}  // namespace phalanx
