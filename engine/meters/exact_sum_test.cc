// SPDX-License-Identifier: Apache-2.0
#include "engine/meters/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace phalanx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeast = std::numeric_limits<double>::denorm_min(), kMost = std::numeric_limits<double>::max();

ExactSum sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum;
}

// Returns values of all magnitudes and both signs from a linear congruential generator. The exact values do not matter.
std::vector<double> many_values() {
  std::vector<double> values;
  std::uint64_t state = 1;
  for (int i = 0; i < 5000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double mantissa = static_cast<double>(static_cast<std::int64_t>(state)) * 0x1p-63;
    values.push_back(std::ldexp(mantissa, static_cast<int>(state >> 20 & 255) - 128));
  }
  return values;
}

TEST(ExactSum, IsZeroInitially) { EXPECT_EQ(ExactSum().value(), 0); }

TEST(ExactSum, EqualsASingleDouble) {
  for (const double value : {1.0, 0.1, -3.5, 1e-300, kLeast, -kLeast, 1e308, kMost, -kMost, 0x1p-1022, 5 * kLeast}) {
    EXPECT_EQ(sum_of({value}).value(), value);
  }
}

TEST(ExactSum, LosesNothingNextToLargerNumbers) {
  EXPECT_EQ(sum_of({1e308, 1, -1e308}).value(), 1);
  EXPECT_EQ(sum_of({kMost, kLeast, -kMost}).value(), kLeast);
  EXPECT_EQ(sum_of({kMost, kMost, -kMost, -kMost, -2}).value(), -2);
  EXPECT_EQ(sum_of({1, 0x1p-60, -1}).value(), 0x1p-60);
}

TEST(ExactSum, DoesNotDependOnTheOrder) {
  auto values = many_values();
  const double sum = sum_of(values).value();
  std::ranges::reverse(values);
  EXPECT_EQ(sum_of(values).value(), sum);
  std::ranges::sort(values);
  EXPECT_EQ(sum_of(values).value(), sum);
}

TEST(ExactSum, DoesNotDependOnHowNumbersAreGrouped) {
  const auto values = many_values();
  std::vector<ExactSum> parts(3);
  for (std::size_t i = 0; i < values.size(); ++i) parts[i * i % 3].add(values[i]);
  for (const std::size_t i : {1, 2}) {
    for (std::size_t cell = 0; cell < parts[0].cells().size(); ++cell) parts[0].cells()[cell] += parts[i].cells()[cell];
  }
  EXPECT_EQ(parts[0].value(), sum_of(values).value());
}

TEST(ExactSum, IsExactForIntegers) {
  std::int64_t whole = 0;
  ExactSum sum;
  for (std::int64_t i = 1; i < 3'000'000; ++i) {  // exceeds the number of additions between two carries
    whole += i % 2 == 0 ? i : -3 * i;
    sum.add(static_cast<double>(i % 2 == 0 ? i : -3 * i));
  }
  EXPECT_EQ(sum.value(), static_cast<double>(whole));
}

TEST(ExactSum, CarriesTheLargestNumbers) {
  ExactSum sum;
  for (int i = 0; i < 2'200'000; ++i) sum.add(0x1.fffffffffffffp63);
  EXPECT_DOUBLE_EQ(sum.value(), 2'200'000 * 0x1.fffffffffffffp63);
  for (int i = 0; i < 2'200'000; ++i) sum.add(-0x1.fffffffffffffp63);
  EXPECT_EQ(sum.value(), 0);
}

TEST(ExactSum, KeepsTheRoundingErrorOfAProduct) {
  const double a = 1 + 0x1p-40, b = 1 - 0x1p-40;  // a b = 1 - 2^-80
  ExactSum sum;
  sum.add_product(a, b);
  sum.add(-1);
  EXPECT_EQ(sum.value(), -0x1p-80);
}

TEST(ExactSum, StaysNotFinite) {
  EXPECT_TRUE(std::isnan(sum_of({1, NAN, 2}).value()));
  EXPECT_EQ(sum_of({1, kInfinity}).value(), kInfinity);
  EXPECT_EQ(sum_of({-kInfinity, 1}).value(), -kInfinity);
  EXPECT_TRUE(std::isnan(sum_of({-kInfinity, kInfinity}).value()));
}

}  // namespace
}  // namespace phalanx
