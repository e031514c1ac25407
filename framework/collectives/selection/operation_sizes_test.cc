// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/selection/operation_sizes.h"

#include <gtest/gtest.h>

#include <limits>

namespace phalanx {
namespace {

TEST(OperationSizes, AClassHasTheSizesNearestToAPowerOfTwo) {
  for (int size_class = 0; size_class < OperationSizes::kClasses; ++size_class) {
    EXPECT_EQ(OperationSizes::class_of(OperationSizes::bytes_of(size_class)), size_class);
  }
  EXPECT_EQ(OperationSizes::class_of(1448), 10) << "below 1024 sqrt(2) = 1448.15";
  EXPECT_EQ(OperationSizes::class_of(1449), 11);
  EXPECT_EQ(OperationSizes::class_of(0), 0);
  EXPECT_EQ(OperationSizes::class_of(std::numeric_limits<std::int64_t>::max()), OperationSizes::kClasses - 1);
}

TEST(OperationSizes, RemembersWhatWasUsed) {
  OperationSizes sizes;
  sizes.add(Op::kReduce, 1000);
  EXPECT_TRUE(sizes.has(Op::kReduce, 10));
  EXPECT_FALSE(sizes.has(Op::kReduce, 9));
  EXPECT_FALSE(sizes.has(Op::kAllReduce, 10));
  sizes.clear();
  EXPECT_FALSE(sizes.has(Op::kReduce, 10));
}

}  // namespace
}  // namespace phalanx
