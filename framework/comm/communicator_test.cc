// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/comm/decorator.h"
#include "framework/comm/testing/recording_communicator.h"

namespace phalanx {
namespace {

using testing::RecordingCommunicator;
using Vector = std::vector<std::int64_t>;

at::Tensor floats(std::int64_t elements) { return at::zeros({elements}); }

// Rank 1 of 3, which remembers the operation that a call has launched.
class Calls : public ::testing::Test {
 protected:
  Operation launched_by(Work work) {
    work.wait();
    return group_.launched().value_or(Operation{});
  }
  RecordingCommunicator group_{1, 3};
};

TEST_F(Calls, OfOneTensorLaunchIt) {
  const at::Tensor tensor = floats(4);
  const auto broadcast = launched_by(group_.broadcast(tensor, 2));
  EXPECT_EQ(describe(broadcast.call), "broadcast(root 2) of 4 Float");
  EXPECT_EQ(broadcast.root(), 2);
  EXPECT_TRUE(broadcast.output.is_same(tensor));
  const auto reduce = launched_by(group_.reduce(tensor, Reduction::kMin, 0));
  EXPECT_EQ(describe(reduce.call), "reduce(min, root 0) of 4 Float");
  EXPECT_EQ(reduce.reduction, Reduction(Reduction::kMin));
  EXPECT_TRUE(reduce.output.is_same(tensor));
  const auto all_reduce = launched_by(group_.all_reduce(tensor, Reduction::kMax));
  EXPECT_EQ(describe(all_reduce.call), "all_reduce(max) of 4 Float");
  EXPECT_EQ(all_reduce.reduction, Reduction(Reduction::kMax));
  EXPECT_TRUE(all_reduce.output.is_same(tensor));
}

TEST_F(Calls, OfPartsLaunchBothTensorsWithTheCounts) {
  const at::Tensor two = floats(2), six = floats(6), seven = floats(7);
  const Vector counts{1, 2, 4};
  const auto reduce_scatter = launched_by(group_.reduce_scatter(two, seven, Reduction::kMax, counts));
  EXPECT_EQ(describe(reduce_scatter.call), "reduce_scatter(max) of 7 Float");
  EXPECT_EQ(reduce_scatter.reduction, Reduction(Reduction::kMax));
  EXPECT_EQ(reduce_scatter.input_counts, counts);
  EXPECT_TRUE(reduce_scatter.output.is_same(two) && reduce_scatter.input.is_same(seven));
  const auto all_gather = launched_by(group_.all_gather(six, two));
  EXPECT_EQ(describe(all_gather.call), "all_gather of 6 Float");
  EXPECT_TRUE(all_gather.input_counts.empty());
  EXPECT_TRUE(all_gather.output.is_same(six) && all_gather.input.is_same(two));
  const auto gather = launched_by(group_.gather(seven, two, 1, counts));
  EXPECT_EQ(describe(gather.call), "gather(root 1) of 7 Float");
  EXPECT_EQ(gather.input_counts, counts);
  EXPECT_TRUE(gather.output.is_same(seven) && gather.input.is_same(two));
  const auto scatter = launched_by(group_.scatter(two, seven, 1, counts));
  EXPECT_EQ(describe(scatter.call), "scatter(root 1) of 7 Float");
  EXPECT_EQ(scatter.input_counts, counts);
  EXPECT_TRUE(scatter.output.is_same(two) && scatter.input.is_same(seven));
  const auto all_to_all = launched_by(group_.all_to_all(seven, six, counts, {3, 2, 1}));
  EXPECT_EQ(all_to_all.call.op, Op::kAllToAll);
  EXPECT_EQ(all_to_all.output_counts, counts);
  EXPECT_EQ(all_to_all.input_counts, (Vector{3, 2, 1}));
  EXPECT_TRUE(all_to_all.output.is_same(seven) && all_to_all.input.is_same(six));
}

TEST_F(Calls, OfMessagesAndBarriersLaunchThem) {
  const at::Tensor tensor = floats(4);
  const auto send = launched_by(group_.send(tensor, 2, 11));
  EXPECT_EQ(describe(send.call), "send(to 2, tag 11) of 4 Float");
  EXPECT_TRUE(send.output.is_same(tensor));
  const auto recv = launched_by(group_.recv(tensor, 0, 12));
  EXPECT_EQ(describe(recv.call), "recv(from 0, tag 12) of 4 Float");
  EXPECT_TRUE(recv.output.is_same(tensor));
  EXPECT_EQ(launched_by(group_.barrier(Seconds(2))).timeout, Seconds(2));
  const auto barrier = launched_by(group_.barrier());
  EXPECT_EQ(barrier.call, Call{.op = Op::kBarrier});
  EXPECT_FALSE(barrier.timeout);
}

TEST_F(Calls, ForMemorySayWhetherItIsShared) {
  EXPECT_EQ(group_.allocate({2, 3}, at::kDouble).sizes(), (Vector{2, 3}));
  const auto own = *group_.launched();
  EXPECT_EQ(describe(own.call), "allocate of 6 Double");
  EXPECT_EQ(group_.allocate_shared({2, 3}, at::kDouble).sizes(), (Vector{2, 3}));
  const auto shared = *group_.launched();
  EXPECT_EQ(describe(shared.call), "allocate_shared of 6 Double");
  EXPECT_EQ(own.call.detail, shared.call.detail);
  group_.allocate({3, 2}, at::kDouble);
  EXPECT_NE(group_.launched()->call.detail, own.call.detail) << "as many elements, of another shape";
}

TEST_F(Calls, WithInvalidArgumentsLaunchNothing) {
  EXPECT_THROW((void)group_.all_reduce(at::Tensor(), Reduction::kSum), std::invalid_argument);
  EXPECT_THROW((void)group_.broadcast(floats(4), 3), std::invalid_argument);
  EXPECT_THROW((void)group_.allocate({-1}, at::kFloat), std::invalid_argument);
  EXPECT_FALSE(group_.launched());
}

// The state of an operation on a device, with separate waits for its stream and its host.
struct Device {
  int ordered = 0;        // number of times a stream was ordered after the operation
  bool complete = false;  // the host has waited
};

class DeviceState final : public Work::State {
 public:
  explicit DeviceState(Device& device) : device_(device) {}
  void wait() override { ++device_.ordered; }
  void synchronize() override { device_.complete = true; }
  bool done() const override { return device_.complete; }

 private:
  Device& device_;
};

// Takes tensors of a device without memory, so that only this test's Work decides when they are ready.
class DeviceGroup final : public Decorator {
 public:
  explicit DeviceGroup(Device& device)
      : Decorator(std::make_shared<RecordingCommunicator>(0, 1, c10::kMeta)), device_(device) {}
  Work launch(Operation operation) override {
    Decorator::launch(std::move(operation)).wait();
    return Work(std::make_shared<DeviceState>(device_));
  }

 private:
  CommunicatorPtr wrap(CommunicatorPtr) override { return nullptr; }
  Device& device_;
};

class DeviceWork : public ::testing::Test {
 protected:
  at::Tensor tensor() const { return at::empty({4}, at::kMeta); }
  Device device_;
  DeviceGroup group_{device_};
};

TEST_F(DeviceWork, WaitOrdersTheStreamAndTheHostGoesOn) {
  Work work = group_.all_reduce(tensor(), Reduction::kSum);
  work.wait();
  EXPECT_EQ(device_.ordered, 1);
  EXPECT_FALSE(device_.complete);
  EXPECT_FALSE(work.done());
}

TEST_F(DeviceWork, SynchronizeBlocksTheHostAlsoAfterWait) {
  Work work = group_.all_reduce(tensor(), Reduction::kSum);
  work.wait();
  work.synchronize();
  EXPECT_TRUE(device_.complete);
  EXPECT_TRUE(work.done());
}

TEST_F(DeviceWork, EachWaitOrdersTheStreamThatIsCurrent) {
  Work work = group_.all_reduce(tensor(), Reduction::kSum);
  work.wait();
  Work moved = std::move(work);
  moved.wait();
  EXPECT_EQ(device_.ordered, 2);
}

TEST_F(DeviceWork, AWorkDroppedWithoutWaitIsWaitedForOnce) {
  {
    Work unwaited = group_.all_reduce(tensor(), Reduction::kSum);
  }
  EXPECT_EQ(device_.ordered, 1);
  {
    Work waited = group_.all_reduce(tensor(), Reduction::kSum);
    waited.wait();
  }
  EXPECT_EQ(device_.ordered, 2);
  EXPECT_FALSE(device_.complete);
}

template <class Launch>
std::string launch_refusal(const Launch& launch) {
  try {
    static_cast<void>(launch());
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "taken";
}

TEST_F(DeviceWork, TensorsOfOtherDevicesAreRefusedByName) {
  const auto all_reduce = [&] { return group_.all_reduce(floats(4), Reduction::kSum); };
  EXPECT_EQ(launch_refusal(all_reduce), "all_reduce: the tensor is on cpu, but recording takes tensors on meta");
  EXPECT_EQ(launch_refusal([&] { return group_.all_gather(tensor(), floats(4)); }),
            "all_gather: the input is on cpu, but recording takes tensors on meta");
  EXPECT_EQ(launch_refusal([&] { return group_.allocate({4}, at::kFloat); }),
            "allocate: the memory is on cpu, but recording takes tensors on meta");
}

}  // namespace
}  // namespace phalanx
