// SPDX-License-Identifier: Apache-2.0
// The processes that are left when others end without notice.
#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

// Ranks 1 and 3 end at arbitrary moments, including while the others agree. All ranks of the last group must get its
// sum.
TEST(ProcessSurvivors, AgreeAtWhateverPointOthersEnd) {
  for (int attempt = 0; attempt < 20; ++attempt) {
    run_ranks(kBackend, 5, [&](const CommunicatorPtr& world) {
      const int rank = world->rank();
      world->barrier().wait();
      std::thread ender;
      if (rank % 2 == 1) {
        ender = std::thread([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(200 * (attempt + 1) * rank));
          ::_exit(0);
        });
      }
      auto group = world;
      for (int step = 0; step < 1000 && group->size() > 3; ++step) {
        try {
          group->barrier().wait();
        } catch (const CommError&) {
          group = group->shrink();
        }
      }
      if (ender.joinable()) ender.join();
      const at::Tensor sum = at::full({1}, rank, at::kFloat);
      while (true) {
        try {
          group->all_reduce(sum.fill_(rank), Reduction::kSum).wait();
          break;
        } catch (const CommError&) {
          group = group->shrink();
        }
      }
      EXPECT_EQ(sum.item<float>(), 0 + 2 + 4);
      EXPECT_EQ(group->size(), 3);
    });
  }
}

}  // namespace
}  // namespace phalanx::testing
