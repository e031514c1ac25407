// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/reduce_kernel.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

namespace phalanx::shared_memory {
namespace {

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<float> {
  static constexpr auto value = c10::kFloat;
};
template <>
struct DtypeOf<double> {
  static constexpr auto value = c10::kDouble;
};
template <>
struct DtypeOf<std::int64_t> {
  static constexpr auto value = c10::kLong;
};

template <class T>
class ReduceKernel : public ::testing::Test {
 protected:
  // Reduces the elements of `ranks` ranks in place, into all of them.
  std::vector<std::vector<T>> reduce_in_place(Reduction op, int ranks, std::int64_t count) {
    std::vector<std::vector<T>> all(ranks, std::vector<T>(count));
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::int64_t i = 0; i < count; ++i) all[rank][i] = element(rank, i);
    }
    std::vector<std::byte*> targets;
    for (auto& one : all) targets.push_back(reinterpret_cast<std::byte*>(one.data()));
    const std::vector<const std::byte*> sources(targets.begin(), targets.end());
    reduce(DtypeOf<T>::value, op, targets, sources, count);
    return all;
  }

  static T element(int rank, std::int64_t i) { return static_cast<T>((i * 7 + rank * 13) % 31 - 15); }

  static T expected(Reduction op, int ranks, std::int64_t i) {
    T result = element(0, i);
    for (int rank = 1; rank < ranks; ++rank) {
      const T next = element(rank, i);
      if (op == Reduction::kMin) result = std::min(result, next);
      if (op == Reduction::kMax) result = std::max(result, next);
      if (op == Reduction::kSum || op == Reduction::kMean) result += next;
    }
    return op == Reduction::kMean ? static_cast<T>(result / static_cast<T>(ranks)) : result;
  }
};
using Types = ::testing::Types<float, double, std::int64_t>;
TYPED_TEST_SUITE(ReduceKernel, Types);

TYPED_TEST(ReduceKernel, CombinesEveryElementIntoEveryTarget) {
  for (auto op : {Reduction::kSum, Reduction::kMean, Reduction::kMin, Reduction::kMax}) {
    for (int ranks : {1, 2, 3, 8}) {
      for (std::int64_t count : {0, 1, 15, 1024, 5001}) {
        const auto all = this->reduce_in_place(op, ranks, count);
        for (int rank = 0; rank < ranks; ++rank) {
          for (std::int64_t i = 0; i < count; ++i) {
            ASSERT_EQ(all[rank][i], this->expected(op, ranks, i))
                << to_string(op) << " of " << ranks << " ranks, element " << i << " at rank " << rank;
          }
        }
      }
    }
  }
}

// Upstream mixed up the two.
TYPED_TEST(ReduceKernel, MinIsNotMax) {
  EXPECT_LT(this->reduce_in_place(Reduction::kMin, 2, 1)[0][0], this->reduce_in_place(Reduction::kMax, 2, 1)[0][0]);
}

TEST(ReduceKernelDtype, RefusesUnsupportedOnes) {
  c10::complex<float> value;
  std::byte* target[] = {reinterpret_cast<std::byte*>(&value)};
  const std::byte* source[] = {target[0], target[0]};
  EXPECT_THROW(reduce(c10::kComplexFloat, Reduction::kSum, target, source, 1), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx::shared_memory
