// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/decorator.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "framework/comm/testing/recording_communicator.h"

namespace phalanx {
namespace {

class Plain final : public Decorator {
 public:
  using Decorator::Decorator;
  using Decorator::inner;

 private:
  CommunicatorPtr wrap(CommunicatorPtr child) override { return std::make_shared<Plain>(std::move(child)); }
};

class Decorated : public ::testing::Test {
 protected:
  std::shared_ptr<testing::RecordingCommunicator> recording_ = std::make_shared<testing::RecordingCommunicator>(2, 5);
  const CommunicatorPtr group_ = std::make_shared<Plain>(recording_);
};

TEST_F(Decorated, HasTheRankAndSizeOfTheInnerOne) {
  EXPECT_EQ(group_->rank(), 2);
  EXPECT_EQ(group_->size(), 5);
  EXPECT_EQ(group_->name(), "recording");
  EXPECT_TRUE(group_->shares_memory());
  EXPECT_TRUE(group_->takes(c10::kCPU));
  EXPECT_FALSE(group_->takes(c10::kCUDA));
  EXPECT_TRUE(group_->offers(NativeWay::kOneShot));
  EXPECT_FALSE(group_->offers(NativeWay::kTwoShot));
  EXPECT_EQ(&group_->recorder(), &recording_->recorder());
}

TEST_F(Decorated, PassesOperationsOnWithAllTheirArguments) {
  const Operation operation{.call = {.elements = 3, .detail = 4, .peer = 1, .tag = 6, .op = Op::kAllToAll},
                            .output = at::zeros({1}),
                            .input = at::zeros({2}),
                            .reduction = Reduction::kMax,
                            .output_counts = {7},
                            .input_counts = {8, 9},
                            .timeout = Seconds(2),
                            .way = NativeWay::kOneShot};
  group_->launch(operation).wait();
  const auto passed = recording_->launched();
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->call, operation.call);
  EXPECT_TRUE(passed->output.is_same(operation.output));
  EXPECT_TRUE(passed->input.is_same(operation.input));
  EXPECT_EQ(passed->reduction, operation.reduction);
  EXPECT_EQ(passed->output_counts, operation.output_counts);
  EXPECT_EQ(passed->input_counts, operation.input_counts);
  EXPECT_EQ(passed->timeout, operation.timeout);
  EXPECT_EQ(passed->way, operation.way);
}

TEST_F(Decorated, PassesBodiesOn) {
  bool ran = false;
  group_->run({.op = Op::kCustom}, [&] { ran = true; }).wait();
  EXPECT_TRUE(ran);
  EXPECT_EQ(recording_->launched()->call.op, Op::kCustom);
}

TEST_F(Decorated, AllocatesFromTheInnerOne) {
  EXPECT_EQ(group_->allocate({3, 2}, at::kDouble).numel(), 6);
  EXPECT_EQ(recording_->launched()->call.op, Op::kAllocate);
  EXPECT_EQ(group_->allocate_shared({5}, at::kDouble).numel(), 5);
  EXPECT_EQ(recording_->launched()->call.op, Op::kAllocateShared);
}

TEST_F(Decorated, DecoratesItsGroups) {
  const auto child = group_->split(1, 4);
  const auto decorated = std::dynamic_pointer_cast<Plain>(child);
  ASSERT_NE(decorated, nullptr);
  EXPECT_EQ(decorated->inner()->rank(), 4) << "split by its color and key";
  EXPECT_EQ(group_->split(-1, 0), nullptr) << "no group, nothing to decorate";
}

}  // namespace
}  // namespace phalanx
