// SPDX-License-Identifier: Apache-2.0
// Tests that the state of one tensor is never used for another.
#include "framework/collectives/compression/compressor_table.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace phalanx {
namespace {

class CompressorTableTest : public ::testing::Test {
 protected:
  CompressorTable table_{Compressors::Choice("int8"), 3};
  const at::Tensor memory_ = at::zeros({100});
};

TEST_F(CompressorTableTest, ATensorKeepsItsCompressor) {
  const auto first = table_.of(memory_);
  EXPECT_EQ(table_.of(memory_), first);
  EXPECT_EQ(table_.of(memory_.view({10, 10})), first) << "the same elements";
  EXPECT_NE(table_.of(at::zeros({100})), first);
}

TEST_F(CompressorTableTest, ADifferentSizeAtTheSameAddressStartsAgain) {
  const std::weak_ptr<Compressor> first = table_.of(memory_);
  const auto smaller = table_.of(memory_.narrow(0, 0, 50));
  EXPECT_TRUE(first.expired()) << "its memory is free";
  EXPECT_NE(table_.of(memory_), smaller);
  EXPECT_NE(table_.of(memory_.narrow(0, 50, 50)), smaller) << "another address";
}

TEST_F(CompressorTableTest, AnotherTensorAtTheSameAddressStartsAgain) {
  float values[10] = {};
  const auto borrow = [&] { return at::from_blob(values, {10}); };
  at::Tensor tensor = borrow();
  const auto first = table_.of(tensor);
  EXPECT_EQ(table_.of(tensor), first);
  tensor = at::Tensor();
  tensor = borrow();
  EXPECT_NE(table_.of(tensor), first);
}

TEST_F(CompressorTableTest, IsBounded) {
  const at::Tensor others[] = {at::zeros({1}), at::zeros({2}), at::zeros({3})};
  const auto first = table_.of(memory_);
  const auto second = table_.of(others[0]);
  table_.of(others[1]);
  EXPECT_EQ(table_.of(memory_), first);
  table_.of(others[2]);
  EXPECT_EQ(table_.size(), 3u);
  EXPECT_EQ(table_.of(memory_), first);
  EXPECT_NE(table_.of(others[0]), second) << "used longest ago";
  EXPECT_EQ(table_.size(), 3u);
}

TEST_F(CompressorTableTest, IsBoundedForTensorsAtOneAddress) {
  for (int size = 1; size <= 100; ++size) table_.of(memory_.narrow(0, 0, size));
  EXPECT_EQ(table_.size(), 3u);
}

TEST_F(CompressorTableTest, RefusesACapacityOfZero) {
  EXPECT_THROW(CompressorTable(Compressors::Choice("int8"), 0), std::invalid_argument);
}

}  // namespace
}  // namespace phalanx
