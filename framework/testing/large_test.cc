// SPDX-License-Identifier: Apache-2.0
// Tests of shared memory with more elements than 32 bits can count.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

constexpr std::int64_t kElements = (std::int64_t{1} << 31) + 5;

class Large : public ::testing::TestWithParam<const char*> {};  // parameter: backend

// shm comes first, because it forks, which must happen before threads are started.
INSTANTIATE_TEST_SUITE_P(Backends, Large, ::testing::Values("shm", "inproc"),
                         [](const auto& info) { return std::string(info.param); });

bool holds(const at::Tensor& tensor, std::uint8_t value) {
  const auto* data = tensor.const_data_ptr<std::uint8_t>();
  return std::all_of(data, data + tensor.numel(), [&](std::uint8_t element) { return element == value; });
}

at::Tensor mine(Communicator& world) { return at::full({kElements}, world.rank() + 1, at::kByte); }

TEST_P(Large, AllReduce) {
  run_ranks(GetParam(), 2, [](const CommunicatorPtr& world) {
    const auto tensor = mine(*world);
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_TRUE(holds(tensor, 3));
  });
}

TEST_P(Large, AllReduceOfAllocatedMemory) {
  run_ranks(GetParam(), 2, [](const CommunicatorPtr& world) {
    const auto tensor = world->allocate({kElements}, at::kByte);
    tensor.fill_(world->rank() + 1);
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_TRUE(holds(tensor, 3));
  });
}

TEST_P(Large, Broadcast) {
  run_ranks(GetParam(), 2, [](const CommunicatorPtr& world) {
    const auto tensor = mine(*world);
    world->broadcast(tensor, 1).wait();
    EXPECT_TRUE(holds(tensor, 2));
  });
}

TEST_P(Large, Message) {
  run_ranks(GetParam(), 2, [](const CommunicatorPtr& world) {
    const auto tensor = mine(*world);
    (world->rank() == 0 ? world->send(tensor, 1) : world->recv(tensor, 0)).wait();
    EXPECT_TRUE(holds(tensor, 1));
  });
}

}  // namespace
}  // namespace phalanx::testing
