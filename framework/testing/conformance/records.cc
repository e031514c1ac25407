// SPDX-License-Identifier: Apache-2.0
// Tests of recorder(), which shows what a rank has launched.
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

using Record = FlightRecorder::Record;
using State = FlightRecorder::State;

class Recording : public Suite {
 protected:
  // Returns the records of the group after `number`. Its operations may consist of operations of other groups, which
  // also have records.
  static std::vector<Record> records_since(const Communicator& group, std::uint64_t number) {
    auto records = group.recorder().records();
    std::erase_if(records,
                  [&](const Record& record) { return record.number <= number || record.group != group.name(); });
    return records;
  }
  static std::uint64_t last_number(const Communicator& group) {
    const auto records = group.recorder().records();
    return records.empty() ? 0 : records.back().number;
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Recording, ::testing::ValuesIn(world_sizes()), ranks_of);

TEST_P(Recording, HoldsEveryOperationAsItWasCalled) {
  run([](const CommunicatorPtr& world) {
    const auto before = last_number(*world);
    const int size = world->size(), right = (world->rank() + 1) % size, left = (world->rank() + size - 1) % size;
    const at::Tensor six = at::zeros({6}, at::kHalf), all = at::zeros({6 * size}, at::kHalf);
    world->all_reduce(six, Reduction::kMin).wait();
    world->broadcast(six, size - 1).wait();
    world->all_gather(all, six).wait();
    Work recv = world->recv(six, left, 9);
    world->send(at::zeros({6}, at::kHalf), right, 9).wait();
    recv.wait();
    world->barrier().wait();

    const auto records = records_since(*world, before);
    const Call want[] = {
        {.elements = 6, .op = Op::kAllReduce, .dtype = at::kHalf, .reduction = Reduction::kMin},
        {.elements = 6, .peer = size - 1, .op = Op::kBroadcast, .dtype = at::kHalf},
        {.elements = 6 * size, .op = Op::kAllGather, .dtype = at::kHalf},
        {.elements = 6, .peer = left, .tag = 9, .op = Op::kRecv, .dtype = at::kHalf},
        {.elements = 6, .peer = right, .tag = 9, .op = Op::kSend, .dtype = at::kHalf},
        {.op = Op::kBarrier},
    };
    ASSERT_EQ(records.size(), std::size(want));
    for (std::size_t i = 0; i < records.size(); ++i) {
      Call call = records[i].call;
      call.detail = 0;
      EXPECT_EQ(call, want[i]) << describe(call) << ", not " << describe(want[i]);
      EXPECT_EQ(records[i].state, State::kDone) << describe(call);
      EXPECT_LE(records[i].launched_ns, records[i].finished_ns);
    }
  });
}

TEST_P(Recording, CountsInEachGroup) {
  run([](const CommunicatorPtr& world) {
    const auto before = last_number(*world);
    const auto group = world->split(0, 0);
    group->barrier().wait();
    world->barrier().wait();
    group->barrier().wait();
    const auto in_group = records_since(*group, before), in_world = records_since(*world, before);
    ASSERT_GE(in_group.size(), 2u);
    ASSERT_FALSE(in_world.empty()) << "one recorder for all groups of a world";
    for (std::size_t i = 0; i < in_group.size(); ++i) EXPECT_EQ(in_group[i].sequence, i + 1);
    const Record &first = *(in_group.end() - 2), &between = in_world.back(), &last = in_group.back();
    for (const auto& record : {first, between, last}) EXPECT_EQ(record.call.op, Op::kBarrier);
    EXPECT_LT(first.number, between.number);
    EXPECT_LT(between.number, last.number);
  });
}

TEST_P(Recording, HoldsFailedAndNestedOperations) {
  run([](const CommunicatorPtr& world) {
    const auto before = last_number(*world);
    const Call call{.elements = 5, .op = Op::kCustom, .dtype = at::kFloat};
    EXPECT_THROW(world->run(call, [] { throw std::runtime_error("of the body"); }).wait(), std::runtime_error);
    world->run(call, [&] { world->barrier().wait(); }).wait();
    const auto records = records_since(*world, before);
    ASSERT_EQ(records.size(), 3u);
    EXPECT_EQ(records[0].call, call);
    EXPECT_EQ(records[0].state, State::kFailed);
    EXPECT_EQ(records[1].call, call);
    EXPECT_EQ(records[2].call.op, Op::kBarrier);
    EXPECT_EQ(records[2].state, State::kDone);
  });
}

TEST_P(Recording, AMessageDoesNotRunBeforeItIsWaitedFor) {
  run([](const CommunicatorPtr& world) {
    const int size = world->size(), right = (world->rank() + 1) % size, left = (world->rank() + size - 1) % size;
    const at::Tensor tensor = at::zeros({6});
    Work recv = world->recv(tensor, left, 9);
    const auto number = last_number(*world);
    const auto record = [&] { return records_since(*world, number - 1).at(0); };
    EXPECT_EQ(record().state, State::kLaunched);
    world->barrier().wait();
    Work send = world->send(at::zeros({6}), right, 9);
    recv.wait();
    send.wait();
    const auto ended = record();
    EXPECT_EQ(ended.state, State::kDone);
    EXPECT_LE(ended.launched_ns, ended.started_ns);
    EXPECT_LE(ended.started_ns, ended.finished_ns);
  });
}

TEST_P(Recording, HoldsNoRefusedOperation) {
  run([](const CommunicatorPtr& world) {
    const auto before = last_number(*world);
    EXPECT_THROW((void)world->all_reduce(at::Tensor(), Reduction::kSum), std::invalid_argument);
    EXPECT_TRUE(records_since(*world, before).empty());
  });
}

}  // namespace
}  // namespace phalanx::testing
