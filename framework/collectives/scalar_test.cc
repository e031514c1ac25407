// SPDX-License-Identifier: Apache-2.0
// Tests the collectives of scalars with every C type.
#include "framework/collectives/scalar.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

template <class T>
class Scalars : public ::testing::Test {};

using CTypes = ::testing::Types<bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long,
                                unsigned long, long long, unsigned long long, float, double>;
TYPED_TEST_SUITE(Scalars, CTypes);

constexpr int kScalarRanks = 3;

// Values that a wrong sign, width or order would change: the highest, the lowest, and a small one.
template <class T>
T value_of(int rank) {
  if (rank == 0) return std::numeric_limits<T>::max();
  return rank == 1 ? std::numeric_limits<T>::lowest() : static_cast<T>(1);
}

// The sum in C arithmetic. Signed overflow is undefined in C, so the addition is unsigned and has enough bits.
template <class T>
T plus(T a, T b) {
  if constexpr (!std::integral<T>) return a + b;
  return static_cast<T>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
}
template <class T>
T times(T a, T b) {
  if constexpr (!std::integral<T>) return a * b;
  return static_cast<T>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
}

template <class T, class Combine>
T over_ranks(const Combine& combine) {
  T result = value_of<T>(0);
  for (int rank = 1; rank < kScalarRanks; ++rank) result = static_cast<T>(combine(result, value_of<T>(rank)));
  return result;
}

TYPED_TEST(Scalars, AllReduceAndReduceAreThoseOfTheCType) {
  using T = TypeParam;
  run_ranks("inproc", kScalarRanks, [](const CommunicatorPtr& world) {
    const T own = value_of<T>(world->rank());
    const auto expect = [&](Reduction op, T expected) {
      EXPECT_EQ(all_reduce(*world, own, op), expected) << op.name();
      EXPECT_EQ(reduce(*world, own, op, 1), world->rank() == 1 ? expected : own) << op.name();
    };
    expect(Reduction::kMin, over_ranks<T>([](T a, T b) { return b < a ? b : a; }));
    expect(Reduction::kMax, over_ranks<T>([](T a, T b) { return a < b ? b : a; }));
    if constexpr (std::is_same_v<T, bool>) {
      expect(Reduction::kSum, true);
      expect(Reduction::kProduct, false);
    } else {
      expect(Reduction::kSum, over_ranks<T>(plus<T>));
      expect(Reduction::kProduct, over_ranks<T>(times<T>));
    }
    if constexpr (std::integral<T>) {
      expect(Reduction::kBitAnd, over_ranks<T>([](T a, T b) { return a & b; }));
      expect(Reduction::kBitOr, over_ranks<T>([](T a, T b) { return a | b; }));
      expect(Reduction::kBitXor, over_ranks<T>([](T a, T b) { return a ^ b; }));
    }
  });
}

TYPED_TEST(Scalars, AMeanNeedsNoMoreBitsThanItsType) {
  using T = TypeParam;
  run_ranks("inproc", kScalarRanks, [](const CommunicatorPtr& world) {
    if constexpr (std::is_same_v<T, bool>) {
      EXPECT_THROW(all_reduce(*world, true, Reduction::kMean), std::invalid_argument);
    } else {
      // Sums of three of these overflow their type, but not 64 bits.
      const T big = sizeof(T) == 8 ? std::numeric_limits<T>::max() / 4 : std::numeric_limits<T>::max();
      EXPECT_EQ(all_reduce(*world, static_cast<T>(std::integral<T> ? big : T(2.5)), Reduction::kMean),
                std::integral<T> ? big : T(2.5));
      if (std::is_signed_v<T>) {  // -4 / 3
        const T value = static_cast<T>(-world->rank() - (world->rank() == 2 ? 1 : 0));
        const T expected = std::integral<T> ? T(-1) : static_cast<T>(T(-4) / T(3));
        EXPECT_EQ(reduce(*world, value, Reduction::kMean, 0), world->rank() == 0 ? expected : value);
      }
    }
  });
}

TYPED_TEST(Scalars, TravelAsTheyAre) {
  using T = TypeParam;
  run_ranks("inproc", kScalarRanks, [](const CommunicatorPtr& world) {
    const int rank = world->rank(), right = (rank + 1) % kScalarRanks, left = (rank + kScalarRanks - 1) % kScalarRanks;
    const T own = value_of<T>(rank);
    for (int root = 0; root < kScalarRanks; ++root) EXPECT_EQ(broadcast(*world, own, root), value_of<T>(root));
    EXPECT_EQ(send_recv(*world, own, right, left), value_of<T>(left));
    EXPECT_EQ(all_gather(*world, own), (std::vector<T>{value_of<T>(0), value_of<T>(1), value_of<T>(2)}));
  });
}

TEST(Scalar, UnsupportedReductionsOfATypeAreErrors) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    EXPECT_THROW(all_reduce(*world, 1.0, Reduction::kBitXor), std::invalid_argument);
    const auto first = Reduction::custom<std::int32_t>("first", [](auto, auto) {});
    EXPECT_EQ(all_reduce(*world, 5 + world->rank(), first), 5);
    EXPECT_THROW(all_reduce(*world, 5u, first), std::invalid_argument);
    EXPECT_THROW(all_reduce(*world, 5l, first), std::invalid_argument);
    EXPECT_THROW(broadcast(*world, 5, 2), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx::testing
