// SPDX-License-Identifier: Apache-2.0
#include "datasets/batch_memory.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

namespace phalanx {
namespace {

TEST(BatchMemory, AllocatesWhatIsMissing) {
  at::Tensor tensor;
  ensure(tensor, {2, 3}, at::kFloat);
  EXPECT_EQ(tensor.sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(tensor.scalar_type(), at::kFloat);
}

TEST(BatchMemory, KeepsWhatFits) {
  at::Tensor tensor;
  ensure(tensor, {2, 3}, at::kFloat);
  const void* before = tensor.data_ptr();
  ensure(tensor, {2, 3}, at::kFloat);
  EXPECT_EQ(tensor.data_ptr(), before);
}

TEST(BatchMemory, ReplacesWhatDoesNotFit) {
  auto tensor = at::empty({2, 3}, at::kFloat);
  ensure(tensor, {3, 2}, at::kFloat);
  EXPECT_EQ(tensor.sizes(), at::IntArrayRef({3, 2}));
  ensure(tensor, {3, 2}, at::kLong);
  EXPECT_EQ(tensor.scalar_type(), at::kLong);
  tensor = at::empty({2, 3}, at::kLong).t();
  ensure(tensor, {3, 2}, at::kLong);
  EXPECT_TRUE(tensor.is_contiguous());
}

TEST(BatchMemory, LeavesMemoryThatIsStillInUse) {
  auto tensor = at::empty({2, 3}, at::kFloat);
  const auto handle = tensor;
  ensure(tensor, {2, 3}, at::kFloat);
  EXPECT_NE(tensor.data_ptr(), handle.data_ptr());
  const auto view = tensor.view({6});
  ensure(tensor, {2, 3}, at::kFloat);
  EXPECT_NE(tensor.data_ptr(), view.data_ptr());
}

}  // namespace
}  // namespace phalanx
