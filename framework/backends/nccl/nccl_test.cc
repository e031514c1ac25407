// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "framework/backends/nccl/native.h"
#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/comm/device_kind.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Operation reducing(Op op, Reduction reduction, at::ScalarType dtype) {
  return {.call = {.op = op}, .output = at::empty({2}, dtype), .reduction = reduction};
}

TEST(Nccl, ReducesSupportedTypesOnly) {
  for (const auto op : {Op::kReduce, Op::kAllReduce, Op::kReduceScatter}) {
    EXPECT_TRUE(nccl::has_native(reducing(op, Reduction::kSum, at::kFloat)));
    EXPECT_TRUE(nccl::has_native(reducing(op, Reduction::kMax, at::kBFloat16)));
    EXPECT_TRUE(nccl::has_native(reducing(op, Reduction::kMean, at::kHalf)));
    EXPECT_TRUE(nccl::has_native(reducing(op, Reduction::kProduct, at::kLong)));
    EXPECT_FALSE(nccl::has_native(reducing(op, Reduction::kMean, at::kInt)));
    EXPECT_FALSE(nccl::has_native(reducing(op, Reduction::kSum, at::kBool)));
    EXPECT_FALSE(nccl::has_native(reducing(op, Reduction::kSum, at::kShort)));
    EXPECT_FALSE(nccl::has_native(reducing(op, Reduction::kBitXor, at::kInt)));
  }
}

TEST(Nccl, MovesAllTypes) {
  for (const auto op : {Op::kBroadcast, Op::kAllGather, Op::kGather, Op::kScatter, Op::kAllToAll}) {
    EXPECT_TRUE(nccl::has_native(reducing(op, Reduction::kSum, at::kBool)));
    EXPECT_TRUE(nccl::has_native(reducing(op, Reduction::kSum, at::kShort)));
  }
}

TEST(Nccl, LeavesMessagesAndBarriersToTheHost) {
  for (const auto op : {Op::kSend, Op::kRecv, Op::kBarrier}) {
    EXPECT_FALSE(nccl::has_native(reducing(op, Reduction::kSum, at::kFloat)));
  }
}

// Applies also to systems with a driver.
TEST(Nccl, WithoutADriverItSaysSoInOneLine) {
  ::setenv("PHALANX_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_THAT([] { Backends::Choice("nccl").make(ConnectOptions{}); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("cuda: there is no NVIDIA driver (/nowhere/libcuda.so.1"), Not(HasSubstr("\n")))));
}

TEST(Cuda, WithoutADriverTheDeviceIsMissingForThatReason) {
  ::setenv("PHALANX_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  EXPECT_EQ(DeviceKinds::Choice("cuda").make()->missing(),
            "there is no NVIDIA driver (/nowhere/libcuda.so.1: cannot open shared object file: No such file or "
            "directory); install one; or use device: cpu");
}

}  // namespace
}  // namespace phalanx
