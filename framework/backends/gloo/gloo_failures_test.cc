// SPDX-License-Identifier: Apache-2.0
// Tests what ranks of this backend notice of others that do not come, leave or are killed.
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <latch>
#include <string>

#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

using Clock = std::chrono::steady_clock;

TEST(Gloo, AnAbsentRankIsNamedAfterTheTimeoutAndTheGroupStaysBroken) {
  std::latch given_up(2);
  const auto body = [&](const CommunicatorPtr& world) {
    if (world->rank() == 2) {
      given_up.wait();
      const auto error = error_of([&] { world->barrier().wait(); });
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << "the others have given up: " << error.what();
      return;
    }
    at::Tensor tensor = at::ones({10});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    given_up.count_down();
    if (error.kind() == CommError::Kind::kTimeout) {
      EXPECT_TRUE(contains(error, "all_reduce #1 of world, rank " + std::to_string(world->rank()) + " of 3: waited "))
          << error.what();
      EXPECT_TRUE(contains(error, "s for rank")) << error.what();
      EXPECT_TRUE(contains(error, "2, which did not come")) << error.what();
    } else {
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
    }
    const auto later = error_of([&] { world->barrier().wait(); });
    EXPECT_STREQ(later.what(), error.what()) << "the group is broken, and the cause stays the same";
    EXPECT_STREQ(error_of([&] { world->send(tensor, 2).wait(); }).what(), error.what());
  };
  run_ranks("gloo", 3, body, Seconds(1));
}

TEST(Gloo, ABarrierHasItsOwnDeadline) {
  std::latch given_up(1);
  run_ranks("gloo", 2, [&](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 1) return given_up.wait();
    const auto error = error_of([&] { world->barrier(Seconds(0.2)).wait(); });
    given_up.count_down();
    EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
    EXPECT_TRUE(contains(error, "barrier #2 of world, rank 0 of 2: waited ")) << error.what();
    EXPECT_TRUE(contains(error, " s for rank 1, which did not come")) << error.what();
  });
}

TEST(Gloo, AMessageThatDoesNotComeIsNamed) {
  std::latch given_up(1);
  const auto body = [&](const CommunicatorPtr& world) {
    if (world->rank() == 1) return given_up.wait();
    at::Tensor tensor = at::ones({4});
    const auto error = error_of([&] { world->recv(tensor, 1, 5).wait(); });
    given_up.count_down();
    EXPECT_EQ(error.kind(), CommError::Kind::kTimeout);
    EXPECT_TRUE(contains(error, "recv(from 1, tag 5) of 4 Float #1 of world, rank 0 of 2: waited ")) << error.what();
    EXPECT_TRUE(contains(error, " s for rank 1, which did not come")) << error.what();
  };
  run_ranks("gloo", 2, body, Seconds(1));
}

// Messages of different calls do not match. If they did, Gloo would accept a shorter message and end the process for a
// longer one.
TEST(Gloo, DifferentCallsTimeOutAndDoNotEndTheProcess) {
  run_ranks(
      "gloo", 2,
      [](const CommunicatorPtr& world) {
        at::Tensor tensor = at::ones({world->rank() == 0 ? 1000 : 2000});
        EXPECT_TRUE(error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); }).secondary());
      },
      Seconds(1));
}

TEST(Gloo, ARankThatLeavesIsNamedAtOnce) {
  run_ranks("gloo", 3, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 1) return;  // the body and the communicator of this rank end here
    const auto start = Clock::now();
    at::Tensor tensor = at::ones({100'000});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_TRUE(contains(error, "left the group or ended")) << error.what();
    EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "far below the timeout";
  });
}

CommunicatorPtr connect(int rank, const StorePtr& store) {
  return Backends::Choice("gloo").make({.rank_info = {.rank = rank, .size = 2, .local_rank = rank, .local_size = 2},
                                        .store = store,
                                        .timeout = Seconds(60)});
}

// Gloo does not report a connection that ends in the middle of a message.
TEST(Gloo, ARankThatIsKilledInTheMiddleOfAMessageIsNamedAtOnce) {
  constexpr std::int64_t kElements = 64 << 20;
  const std::string path = ::testing::TempDir() + "gloo_test." + std::to_string(::getpid());
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    connect(1, make_file_store(path, 2, Seconds(60)))->send(at::ones({kElements}, at::kByte), 0).wait();
    ::_exit(0);
  }
  const auto world = connect(0, make_file_store(path, 2, Seconds(60)));
  const at::Tensor tensor = at::zeros({kElements}, at::kByte);
  const volatile auto* bytes = tensor.data_ptr<std::uint8_t>();
  Work work = world->recv(tensor, 1);
  const auto deadline = Clock::now() + std::chrono::seconds(30);
  while (bytes[0] == 0 && Clock::now() < deadline) {
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_EQ(bytes[kElements - 1], 0) << "the message was too short for this test";
  const auto start = Clock::now();
  const auto error = error_of([&] { work.wait(); });
  EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
  EXPECT_TRUE(contains(error, "rank 1 left the group or ended")) << error.what();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10)) << "far below the timeout";
  std::filesystem::remove(path);
}

TEST(Gloo, ABrokenGroupDoesNotAffectOthers) {
  run_ranks("gloo", 2, [](const CommunicatorPtr& world) {
    const auto pair = world->split(0, 0);
    if (world->rank() == 0) {
      EXPECT_THROW(pair->barrier(Seconds(0.1)).wait(), CommError);
    }
    world->barrier().wait();
    at::Tensor sum = at::ones({1});
    world->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum.item<float>(), 2);
  });
}

}  // namespace
}  // namespace phalanx::testing
