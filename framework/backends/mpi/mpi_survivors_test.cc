// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

const char* const phalanx::testing::kBackend = "mpi_processes";

// Tests the properties that only MPI has. The suite of survivors tests the properties that all backends share.
namespace phalanx::testing {
namespace {

using Kind = CommError::Kind;

TEST(MpiSurvivors, AreToldWhichRankWasKilled) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    if (world->rank() == 1) {
      world->barrier().wait();
      ::raise(SIGKILL);
    }
    const auto error = error_of([&] {
      world->barrier().wait();  // may fail already
      if (world->rank() == 0) {
        world->recv(at::zeros({5}), 1, 7).wait();
      } else {
        world->all_reduce(at::zeros({5}), Reduction::kSum).wait();
      }
    });
    EXPECT_EQ(error.kind(), Kind::kPeerLost);
    EXPECT_TRUE(contains(error, "rank 1 has ended")) << error.what();
  });
}

TEST(MpiSurvivors, InterruptGroupsThatWereSplit) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    const auto part = world->split(0, 0);
    if (world->rank() == 2) {
      const auto error = error_of([&] { part->barrier().wait(); });
      EXPECT_EQ(error.kind(), Kind::kPeerLost);
      EXPECT_TRUE(contains(error, "another rank has called shrink")) << error.what();
    }
    const auto left = world->shrink();
    const at::Tensor sum = at::full({1}, world->rank(), at::kLong);
    left->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum.item<std::int64_t>(), 0 + 1 + 2);
    const auto again = error_of([&] { (void)world->shrink(); });
    EXPECT_EQ(again.kind(), Kind::kPeerLost);
    EXPECT_TRUE(contains(again, "has been shrunk before")) << again.what();
  });
}

TEST(MpiSurvivors, FailTogetherIfARankThatIsAliveDoesNotCome) {
  const auto body = [](const CommunicatorPtr& world) {
    const auto part = world->split(0, 0);
    if (world->rank() != 1) {
      const auto error = error_of([&] { (void)part->shrink(); });
      EXPECT_EQ(error.kind(), Kind::kTimeout);
      EXPECT_TRUE(contains(error, "did not come but have not ended")) << error.what();
    }
    world->barrier(Seconds(60)).wait();
  };
  run_ranks(kBackend, 3, body, Seconds(3));
}

}  // namespace
}  // namespace phalanx::testing
