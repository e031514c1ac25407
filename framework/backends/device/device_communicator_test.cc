// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/device_communicator.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "framework/base/error.h"
#include "framework/comm/testing/recording_communicator.h"

namespace phalanx {
namespace {

using testing::RecordingCommunicator;

// The meta device stands for a real device, so that the tests run on any host. They check only which group receives an
// operation; no bytes are moved.
class DeviceRouting : public ::testing::Test {
 protected:
  static at::Tensor on_device(at::ScalarType dtype = at::kFloat) {
    return at::ones({4}, at::device(at::kMeta).dtype(dtype));
  }

  std::shared_ptr<RecordingCommunicator> host_ = std::make_shared<RecordingCommunicator>(0, 2);
  std::shared_ptr<RecordingCommunicator> native_ = std::make_shared<RecordingCommunicator>(0, 2, c10::kMeta);
  DeviceCommunicator group_{host_, c10::kMeta, {.native = {native_, [](const Operation& operation) {
                                                             return operation.call.op == Op::kAllReduce;
                                                           }}}};
};

TEST_F(DeviceRouting, TakesBothKindsOfTensors) {
  EXPECT_TRUE(group_.takes(c10::kCPU));
  EXPECT_TRUE(group_.takes(c10::kMeta));
  EXPECT_FALSE(group_.takes(c10::kCUDA));
}

TEST_F(DeviceRouting, HandlesCpuTensorsOnTheHost) {
  group_.all_reduce(at::ones({4}), Reduction::kSum).wait();
  EXPECT_TRUE(host_->launched());
  EXPECT_FALSE(native_->launched());
}

TEST_F(DeviceRouting, UsesTheNativeGroupForTheOperationsThatItSupports) {
  group_.all_reduce(on_device(), Reduction::kSum).wait();
  EXPECT_FALSE(host_->launched());
  ASSERT_TRUE(native_->launched());
}

TEST_F(DeviceRouting, OperationsBelongToGraphsIfTheNativeGroupHasThemOrThereIsOneRank) {
  EXPECT_TRUE(group_.in_graphs(c10::kMeta));
  EXPECT_FALSE(group_.in_graphs(c10::kCPU));
  EXPECT_FALSE(DeviceCommunicator(host_, c10::kMeta).in_graphs(c10::kMeta));
  EXPECT_TRUE(DeviceCommunicator(std::make_shared<RecordingCommunicator>(0, 1), c10::kMeta).in_graphs(c10::kMeta));
  EXPECT_FALSE(host_->in_graphs(c10::kMeta));
}

TEST_F(DeviceRouting, RunsBarriersOnTheHost) {
  group_.barrier().wait();
  EXPECT_TRUE(host_->launched());
  EXPECT_FALSE(native_->launched());
}

TEST_F(DeviceRouting, MixedDevicesAreAnErrorThatNamesBoth) {
  EXPECT_THAT([&] { group_.all_gather(at::ones({8}), on_device()).wait(); },
              ::testing::ThrowsMessage<std::invalid_argument>(
                  ::testing::AllOf(::testing::HasSubstr("meta"), ::testing::HasSubstr("cpu"))));
}

TEST_F(DeviceRouting, BodiesRunDuringLaunch) {
  bool ran = false;
  auto work = group_.run({.op = Op::kCustom}, [&] { ran = true; });
  EXPECT_TRUE(ran);
  work.wait();
}

TEST_F(DeviceRouting, ErrorsOfBodiesAreThrownByWait) {
  auto work = group_.run({.op = Op::kCustom}, [] { throw CommError(CommError::Kind::kTimeout, "late"); });
  EXPECT_THROW(work.wait(), CommError);
}

// For example, a group that supports GPU tensors, in a run on CPUs.
TEST_F(DeviceRouting, BodiesRunWithoutDevices) {
  DeviceCommunicator group(host_, c10::kXLA);
  bool ran = false;
  group.run({.op = Op::kCustom}, [&] { ran = true; }).wait();
  EXPECT_TRUE(ran);
}

TEST_F(DeviceRouting, SplitGroupsTakeBothKindsToo) {
  const auto child = group_.split(0, 1);
  EXPECT_TRUE(child->takes(c10::kMeta));
  EXPECT_EQ(group_.split(-1, 0), nullptr);
}

TEST_F(DeviceRouting, AllocatesMemoryInTheGroupOfItsDevice) {
  group_.allocate({3}, at::device(at::kMeta).dtype(at::kFloat));
  EXPECT_TRUE(native_->launched());
  EXPECT_FALSE(host_->launched());
  group_.allocate({3}, at::kFloat);
  EXPECT_TRUE(host_->launched());
}

TEST_F(DeviceRouting, CannotShareDeviceMemory) {
  EXPECT_THROW(group_.allocate_shared({3}, at::device(at::kMeta).dtype(at::kFloat)), ConfigError);
}

TEST_F(DeviceRouting, CannotShrink) { EXPECT_THROW(group_.shrink(), ConfigError); }

}  // namespace
}  // namespace phalanx
