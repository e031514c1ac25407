// SPDX-License-Identifier: Apache-2.0
#include "models/exported/size_arithmetic.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <string>

namespace phalanx::exported {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

std::int64_t computed(const std::string& target, std::int64_t a, std::int64_t b) {
  return arithmetic_of(target)({a, b}).toInt();
}

TEST(SizeArithmetic, DividesAsPythonDoes) {
  for (const std::int64_t a : {-7, -6, -1, 0, 1, 6, 7}) {
    for (const std::int64_t b : {-3, -1, 1, 3}) {
      const auto quotient = computed("_operator.floordiv", a, b), rest = computed("_operator.mod", a, b);
      EXPECT_EQ(quotient * b + rest, a) << a << " and " << b;
      EXPECT_TRUE(rest == 0 || (rest < 0) == (b < 0)) << a << " and " << b;
      EXPECT_LT(std::abs(rest), std::abs(b));
    }
  }
  EXPECT_EQ(computed("_operator.floordiv", kLeast, 3), kLeast / 3 - 1);
  EXPECT_EQ(computed("_operator.mod", kLeast, -1), 0);
}

TEST(SizeArithmetic, RefusesImpossibleSizes) {
  for (const char* target : {"_operator.floordiv", "_operator.mod"}) {
    EXPECT_THROW(computed(target, 1, 0), std::domain_error) << target;
  }
  EXPECT_THROW(computed("_operator.add", kMost, 1), std::overflow_error);
  EXPECT_THROW(computed("_operator.sub", kLeast, 1), std::overflow_error);
  EXPECT_THROW(computed("_operator.mul", std::int64_t{1} << 62, 4), std::overflow_error);
  EXPECT_THROW(computed("_operator.floordiv", kLeast, -1), std::overflow_error);
  EXPECT_THROW(arithmetic_of("_operator.neg")({kLeast}), std::overflow_error);
  EXPECT_THROW(arithmetic_of("_operator.add")({3}), std::exception);
}

TEST(SizeArithmetic, ReturnsNullForOtherTargets) { EXPECT_EQ(arithmetic_of("torch.ops.aten.add.Tensor"), nullptr); }

}  // namespace
}  // namespace phalanx::exported
