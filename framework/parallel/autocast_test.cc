// SPDX-License-Identifier: Apache-2.0
// Mixed precision.
#include "framework/parallel/autocast.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <thread>

namespace phalanx {
namespace {

at::ScalarType dtype_of_a_product() { return at::mm(at::randn({2, 2}), at::randn({2, 2})).scalar_type(); }

TEST(Autocast, ProductsComputeWithTheDtypeAndOnlyWhileItLives) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    {
      const Autocast half(at::kCPU, dtype);
      EXPECT_EQ(Autocast::current(at::kCPU), dtype);
      EXPECT_EQ(dtype_of_a_product(), dtype);
      EXPECT_EQ(at::add(at::randn({2}), at::randn({2})).scalar_type(), at::kFloat) << "sums stay as they are";
    }
    EXPECT_EQ(Autocast::current(at::kCPU), at::kFloat);
    EXPECT_EQ(dtype_of_a_product(), at::kFloat);
  }
}

TEST(Autocast, TheInnerOneCounts) {
  const Autocast outer(at::kCPU, at::kBFloat16);
  {
    const Autocast inner(at::kCPU, at::kFloat);
    EXPECT_EQ(dtype_of_a_product(), at::kFloat);
  }
  EXPECT_EQ(dtype_of_a_product(), at::kBFloat16);
}

TEST(Autocast, AppliesToOneThread) {
  const Autocast half(at::kCPU, at::kBFloat16);
  std::thread([] { EXPECT_EQ(dtype_of_a_product(), at::kFloat); }).join();
}

// The sum of two gradients near 1 would have 8 bits in bfloat16; in float32 it still contains the small one.
TEST(Autocast, GradientsOfAParameterUsedTwiceAddUpInFloat32) {
  const auto weight = at::randn({1, 1}).requires_grad_();
  const auto one = at::randn({1, 1}).fill_(1), little = at::randn({1, 1}).fill_(0x1p-12);
  {
    const Autocast half(at::kCPU, at::kBFloat16);
    (at::linear(one, weight).to(at::kFloat) + at::linear(little, weight).to(at::kFloat)).sum().backward();
  }
  EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
  EXPECT_EQ(weight.grad().item<float>(), 1 + 0x1p-12F);
}

}  // namespace
}  // namespace phalanx
