// SPDX-License-Identifier: Apache-2.0
// Tests of ranks that are processes and end without notice.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

using Kind = CommError::Kind;

[[noreturn]] void die() { ::_exit(0); }

// Waits until no one can read the memory of a process any more. Of a process that has ended, the system keeps at most a
// status.
void wait_for_end_of(std::int64_t process) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (std::chrono::steady_clock::now() < deadline) {
    std::string word;
    std::ifstream status("/proc/" + std::to_string(process) + "/status");
    while (status >> word && word != "State:") continue;
    if (!(status >> word) || word == "Z" || word == "X") return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FAIL() << "process " << process << " still runs";
}

TEST(ProcessLosses, AProcessThatEndsInsideAReductionIsNoticed) {
  for (const std::int64_t elements : {8, 100'000}) {
    run_ranks(kBackend, 3, [&](const CommunicatorPtr& world) {
      const bool dies = world->rank() == 1;
      const auto fatal = Reduction::custom<float>("fatal", [dies](auto, auto) {
        if (dies) die();
      });
      world->barrier().wait();
      // A rank that needs nothing more from the dead one may succeed this time.
      try {
        world->all_reduce(at::zeros({elements}), fatal).wait();
      } catch (const CommError& error) {
        EXPECT_EQ(error.kind(), Kind::kPeerLost) << error.what();
        EXPECT_TRUE(contains(error, "all_reduce #2 of world, rank")) << error.what();
      }
      const auto later = error_of([&] { world->barrier().wait(); });
      EXPECT_EQ(later.kind(), Kind::kPeerLost) << later.what();
      EXPECT_TRUE(contains(later, "rank")) << later.what();
    });
  }
}

TEST(ProcessLosses, AProcessThatEndsDuringAMessageIsNoticed) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const at::Tensor large = at::zeros({10'000'000});
    const at::Tensor process = at::full({1}, ::getpid(), at::kLong);
    world->broadcast(process, 1).wait();
    if (world->rank() == 1) {
      Work send = world->send(large, 0, 4);  // fills the available buffers
      die();
    }
    wait_for_end_of(process.item<std::int64_t>());
    const auto error = error_of([&] { world->recv(large, 1, 4).wait(); });
    EXPECT_EQ(error.kind(), Kind::kPeerLost);
    EXPECT_TRUE(contains(error, "recv(from 1, tag 4) of 10000000 Float #")) << error.what();
    EXPECT_TRUE(contains(error, "rank 1 ended")) << error.what();
  });
}

TEST(ProcessLosses, AProcessThatTakesAMessageAndEndsIsNoticed) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 1) die();
    const auto error = error_of([&] { world->send(at::zeros({10'000'000}), 1).wait(); });
    EXPECT_EQ(error.kind(), Kind::kPeerLost);
    EXPECT_TRUE(contains(error, "rank 1 ended")) << error.what();
  });
}

}  // namespace
}  // namespace phalanx::testing
