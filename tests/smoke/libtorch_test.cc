// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

namespace {

TEST(LibTorch, AddsTensors) {
  const at::Tensor sum = at::full({4}, 1.5F) + at::full({4}, 2.5F);
  EXPECT_EQ(sum.sum().item<float>(), 16.0F);
}

TEST(LibTorch, ThrowsItsOwnErrors) { EXPECT_THROW(at::full({2}, 1.0F) + at::full({3}, 1.0F), c10::Error); }

}  // namespace
