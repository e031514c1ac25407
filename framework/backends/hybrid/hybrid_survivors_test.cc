// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "framework/collectives/hierarchical/hierarchical_communicator.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

const char* const phalanx::testing::kBackend = "hybrid";

// Tests the properties that groups of several hosts have. The suites of survivors test those that all backends share.
namespace phalanx::testing {
namespace {

bool works_by_hosts(const CommunicatorPtr& group) {
  return std::dynamic_pointer_cast<HierarchicalCommunicator>(group) != nullptr;
}

// Expects the results of the survivors 0, 2, 3 and 4 of the first world.
void expect_results(Communicator& left, int world_rank) {
  const at::Tensor sum = at::full({1000}, world_rank, at::kLong);
  left.all_reduce(sum, Reduction::kSum).wait();
  EXPECT_EQ(sum[999].item<std::int64_t>(), 0 + 2 + 3 + 4);
  const at::Tensor all = at::empty({4}, at::kLong);
  left.all_gather(all, at::full({1}, world_rank, at::kLong)).wait();
  EXPECT_TRUE(at::equal(all, at::tensor({0, 2, 3, 4}, at::kLong)));
}

// Ranks 0 to 2 are on one host, and 3 and 4 on another.
TEST(HybridSurvivors, WorkByHostsAgain) {
  run_ranks(kBackend, 5, [](const CommunicatorPtr& world) {
    EXPECT_TRUE(works_by_hosts(world));
    world->barrier().wait();
    if (world->rank() == 1) return;
    EXPECT_EQ(error_of([&] { world->all_reduce(at::full({1}, 1, at::kLong), Reduction::kSum).wait(); }).kind(),
              CommError::Kind::kPeerLost);
    const auto left = world->shrink();
    EXPECT_TRUE(works_by_hosts(left));
    expect_results(*left, world->rank());
    left->barrier().wait();
    if (world->rank() == 3) return;
    EXPECT_EQ(error_of([&] { left->barrier().wait(); }).kind(), CommError::Kind::kPeerLost);
    const auto last = left->shrink();
    EXPECT_EQ(last->size(), 3);
    EXPECT_TRUE(works_by_hosts(last)) << "ranks 0 and 2 are still on one host";
  });
}

// Ranks 0 and 1 are on one host, and 2 and 3 on another.
TEST(HybridSurvivors, OfAGroupOfOneHostLeaveTheOtherGroupsAlone) {
  run_ranks(kBackend, 4, [](const CommunicatorPtr& world) {
    const auto host = world->split(world->rank() / 2, 0);
    if (world->rank() < 2) {
      const auto left = host->shrink();
      EXPECT_EQ(left->size(), 2);
      const at::Tensor sum = at::full({1}, world->rank(), at::kLong);
      left->all_reduce(sum, Reduction::kSum).wait();
      EXPECT_EQ(sum.item<std::int64_t>(), 0 + 1);
    }
    world->barrier().wait();
    if (world->rank() >= 2) host->barrier().wait();
  });
}

}  // namespace
}  // namespace phalanx::testing
