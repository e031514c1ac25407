// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/worlds.h"

const char* const phalanx::testing::kBackend = "shm";

namespace phalanx::testing {
namespace {

// Many more ranks than cores start, communicate and stop.
TEST(Oversubscribed, ThirtyTwoRanksStartTalkAndStop) {
  run_ranks(kBackend, 32, [](const CommunicatorPtr& world) {
    at::Tensor tensor = world->allocate({1000}, at::kFloat).fill_(1);
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[999].item<float>(), 32);
  });
}

}  // namespace
}  // namespace phalanx::testing
