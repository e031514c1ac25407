// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/reduction.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace phalanx {
namespace {

using Kind = Reduction::Kind;

constexpr std::array kKinds{Kind::kSum, Kind::kMean,   Kind::kProduct, Kind::kMin,
                            Kind::kMax, Kind::kBitAnd, Kind::kBitOr,   Kind::kBitXor};
// Lengths around the width of vectors, and a long one.
constexpr std::array kCounts{0, 1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 1000};

template <class T>
constexpr c10::ScalarType kDtype = c10::CppTypeToScalarType<T>::value;

// A buffer with pointers to its elements, which std::vector<bool> does not give.
template <class T>
struct Run {
  explicit Run(int count) : elements(new T[count + 1]()), count(count) {}
  std::span<T> span() { return {elements.get(), static_cast<std::size_t>(count)}; }
  T* data() { return elements.get(); }

  std::unique_ptr<T[]> elements;
  int count;
};

// Returns whole numbers, of both signs if T has them. Products and sums of two of them fit every type.
template <class T>
Run<T> values(int count, int seed) {
  Run<T> run(count);
  for (int i = 0; i < count; ++i) {
    const int value = (i * 7 + seed * 5) % 11;
    run.span()[i] = static_cast<T>(std::is_same_v<T, bool> ? value % 2 : std::is_unsigned_v<T> ? value : value - 5);
  }
  return run;
}

// Computes in double, which holds every value here, and every result.
double combined(Kind kind, double a, double b) {
  const auto whole = [](double x) { return static_cast<std::int64_t>(x); };
  switch (kind) {
    case Kind::kSum:
    case Kind::kMean:
      return a + b;
    case Kind::kProduct:
      return a * b;
    case Kind::kMin:
      return std::min(a, b);
    case Kind::kMax:
      return std::max(a, b);
    case Kind::kBitAnd:
      return static_cast<double>(whole(a) & whole(b));
    case Kind::kBitOr:
      return static_cast<double>(whole(a) | whole(b));
    case Kind::kBitXor:
      return static_cast<double>(whole(a) ^ whole(b));
    case Kind::kCustom:
      break;
  }
  throw std::logic_error("no plain way");
}

template <class T>
class Reductions : public ::testing::Test {};
using Types = ::testing::Types<std::uint8_t, std::int8_t, std::int16_t, std::int32_t, std::int64_t, c10::Half,
                               c10::BFloat16, float, double, bool>;
TYPED_TEST_SUITE(Reductions, Types);

TYPED_TEST(Reductions, CombineAsAPlainLoop) {
  for (const Kind kind : kKinds) {
    const Reduction reduction(kind);
    if (!reduction.takes(kDtype<TypeParam>)) continue;
    for (const int count : kCounts) {
      auto result = values<TypeParam>(count, 1), before = values<TypeParam>(count, 1);
      auto source = values<TypeParam>(count, 2);
      const auto guard = static_cast<TypeParam>(1);
      result.data()[count] = guard;
      reduction.combine(kDtype<TypeParam>, result.data(), source.data(), count);
      for (int i = 0; i < count; ++i) {
        const double want =
            combined(kind, static_cast<double>(before.span()[i]), static_cast<double>(source.span()[i]));
        ASSERT_EQ(result.span()[i], static_cast<TypeParam>(want)) << reduction.name() << " at " << i << " of " << count;
      }
      EXPECT_EQ(result.data()[count], guard) << "wrote past the end";
    }
  }
}

TYPED_TEST(Reductions, CombineARunWithItself) {
  for (const Kind kind : {Kind::kSum, Kind::kMax}) {
    auto run = values<TypeParam>(100, 3), before = values<TypeParam>(100, 3);
    Reduction(kind).combine(kDtype<TypeParam>, run.data(), run.data(), 100);
    for (int i = 0; i < 100; ++i) {
      const auto x = static_cast<double>(before.span()[i]);
      ASSERT_EQ(run.span()[i], static_cast<TypeParam>(combined(kind, x, x)));
    }
  }
}

TYPED_TEST(Reductions, OnlyAMeanHasAnEnd) {
  for (const Kind kind : kKinds) {
    const Reduction reduction(kind);
    if (!reduction.takes(kDtype<TypeParam>)) continue;
    for (const int count : kCounts) {
      auto result = values<TypeParam>(count, 1), before = values<TypeParam>(count, 1);
      reduction.finish(kDtype<TypeParam>, result.data(), count, 3);
      for (int i = 0; i < count; ++i) {
        const auto sum = static_cast<double>(before.span()[i]);
        const bool whole = std::is_integral_v<TypeParam>;
        const auto mean = static_cast<TypeParam>(whole ? std::trunc(sum / 3) : static_cast<double>(float(sum) / 3));
        if constexpr (std::is_same_v<TypeParam, double>) {
          ASSERT_EQ(result.span()[i], kind == Kind::kMean ? sum / 3 : sum);
        } else {
          ASSERT_EQ(result.span()[i], kind == Kind::kMean ? mean : before.span()[i]) << reduction.name();
        }
      }
    }
  }
}

TYPED_TEST(Reductions, SupportTheDtypesThatTheyCanReduce) {
  constexpr bool kBool = std::is_same_v<TypeParam, bool>, kWhole = std::is_integral_v<TypeParam>;
  for (const Kind kind : kKinds) {
    const bool bits = kind == Kind::kBitAnd || kind == Kind::kBitOr || kind == Kind::kBitXor;
    const bool takes = bits ? kWhole : kind != Kind::kMean || !kBool;
    EXPECT_EQ(Reduction(kind).takes(kDtype<TypeParam>), takes) << to_string(kind);
  }
}

TEST(Reduction, OfIntegersWraps) {
  std::int8_t a = 127, b = 1;
  Reduction(Reduction::kSum).combine(c10::kChar, &a, &b, 1);
  EXPECT_EQ(a, -128);
  std::int64_t large = INT64_MAX, two = 2;
  Reduction(Reduction::kProduct).combine(c10::kLong, &large, &two, 1);
  EXPECT_EQ(large, -2);
}

TEST(Reduction, OfBoolsIsLogical) {
  bool result[] = {false, true, false, true};
  const bool source[] = {false, false, true, true};
  Reduction(Reduction::kSum).combine(c10::kBool, result, source, 4);
  EXPECT_EQ(std::vector(result, result + 4), (std::vector{false, true, true, true}));
  const bool again[] = {true, true, false, true};
  Reduction(Reduction::kProduct).combine(c10::kBool, result, again, 4);
  EXPECT_EQ(std::vector(result, result + 4), (std::vector{false, true, false, true}));
}

// Halves are combined in float32, then rounded once.
TEST(Reduction, OfHalvesRoundsAFloat) {
  c10::Half half(2049.0F), one(1.5F);
  const float want = static_cast<float>(half) + 1.5F;
  Reduction(Reduction::kSum).combine(c10::kHalf, &half, &one, 1);
  EXPECT_EQ(half, c10::Half(want));
  c10::BFloat16 brain(3.0F), third(1.0F / 3);
  const float product = static_cast<float>(brain) * static_cast<float>(third);
  Reduction(Reduction::kProduct).combine(c10::kBFloat16, &brain, &third, 1);
  EXPECT_EQ(brain, c10::BFloat16(product));
}

// Composes affine maps x -> a x + b modulo 97. This is associative, but not commutative.
std::int64_t compose(std::int64_t f, std::int64_t g) {
  return f / 97 * (g / 97) % 97 * 97 + (f % 97 * (g / 97) + g % 97) % 97;
}

TEST(Reduction, CustomCallsTheFunction) {
  const auto reduction = Reduction::custom<std::int64_t>("compose", [](auto result, auto next) {
    ASSERT_EQ(result.size(), next.size());
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = compose(result[i], next[i]);
  });
  std::vector<std::int64_t> f{100, 205, 9000}, g{300, 401, 7};
  const std::vector<std::int64_t> want{compose(100, 300), compose(205, 401), compose(9000, 7)};
  reduction.combine(c10::kLong, f.data(), g.data(), 3);
  EXPECT_EQ(f, want);
  reduction.finish(c10::kLong, f.data(), 3, 5);
  EXPECT_EQ(f, want);
}

TEST(Reduction, CustomIsForItsTypeOnly) {
  const auto reduction = Reduction::custom<float>("nothing", [](auto, auto) {});
  EXPECT_EQ(reduction.kind(), Kind::kCustom);
  EXPECT_EQ(reduction.name(), "nothing");
  EXPECT_TRUE(reduction.takes(c10::kFloat));
  EXPECT_FALSE(reduction.takes(c10::kDouble));
  EXPECT_FALSE(reduction.commutative());
  EXPECT_TRUE(Reduction::custom<float>("nothing", [](auto, auto) {}, true).commutative());
}

TEST(Reduction, IsAValue) {
  const Reduction sum, also = Reduction::kSum;
  EXPECT_EQ(sum, also);
  EXPECT_TRUE(sum.commutative());
  EXPECT_FALSE(sum == Reduction(Reduction::kMax));
  const auto mine = Reduction::custom<float>("mine", [](auto, auto) {});
  const Reduction copy = mine;
  EXPECT_EQ(copy, mine);
  EXPECT_FALSE(mine == Reduction::custom<float>("mine", [](auto, auto) {})) << "another function, for all we know";
}

TEST(Reduction, HasItsOwnName) {
  std::vector<std::string> names;
  for (const Kind kind : kKinds) names.push_back(Reduction(kind).name());
  EXPECT_EQ(names, (std::vector<std::string>{"sum", "mean", "product", "min", "max", "bit_and", "bit_or", "bit_xor"}));
}

TEST(Reduction, RefusesOtherTypes) {
  std::int64_t element[2] = {};
  EXPECT_THROW(Reduction().combine(c10::kComplexFloat, element, element, 1), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
