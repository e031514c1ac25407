// SPDX-License-Identifier: Apache-2.0
// Tests the specifics of this backend: its transport, its order of combining, and the end of a world.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "framework/base/error.h"
#include "framework/comm/backend.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::size_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// In the predecessor, the minimum over Gloo returned the maximum. The small and the large size use different
// algorithms of Gloo.
TEST(Gloo, MinimumAndMaximumAreNotSwapped) {
  run_ranks("gloo", 3, [](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {5, 2'200'000}) {
      for (const auto dtype : {at::kFloat, at::kLong, at::kHalf}) {
        at::Tensor smallest = at::full({elements}, world->rank() - 1, dtype), largest = smallest.clone();
        world->all_reduce(smallest, Reduction::kMin).wait();
        world->all_reduce(largest, Reduction::kMax).wait();
        EXPECT_TRUE(at::equal(smallest, at::full({elements}, -1, dtype))) << dtype;
        EXPECT_TRUE(at::equal(largest, at::full({elements}, 1, dtype))) << dtype;
        at::Tensor least = at::full({elements}, world->rank() - 1, dtype);
        world->reduce(least, Reduction::kMin, 2).wait();
        EXPECT_EQ(least[0].item<double>(), world->rank() == 2 ? -1 : world->rank() - 1)
            << "only root's tensor is written";
      }
    }
  });
}

// The sum of these values depends on the order of addition, in both algorithms.
TEST(Gloo, AllReduceGivesEveryRankTheSameBits) {
  run_ranks("gloo", 3, [](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {1001, 1'100'003}) {
      at::Tensor tensor = at::arange(elements, at::kFloat).sin_().mul_(1e3 * (world->rank() + 1)).add_(1e-3);
      world->all_reduce(tensor, Reduction::kMean).wait();
      at::Tensor roots = tensor.clone();
      world->broadcast(roots, 0).wait();
      EXPECT_TRUE(at::equal(tensor, roots)) << elements << " elements";
      EXPECT_TRUE(tensor.allclose(at::arange(elements, at::kFloat).sin_().mul_(2e3).add_(1e-3), 1e-4, 1e-2));
    }
  });
}

// The last argument wins: associative, and the result shows the order.
Reduction last_of() {
  return Reduction::custom<std::int64_t>(
      "last", [](std::span<std::int64_t> result, auto next) { std::ranges::copy(next, result.begin()); });
}

TEST(Gloo, ReductionsThatDoNotCommuteAreInRankOrder) {
  run_ranks("gloo", 5, [](const CommunicatorPtr& world) {
    for (const std::int64_t elements : {1, 7, 20'000}) {
      at::Tensor last = at::full({elements}, world->rank(), at::kLong);
      world->all_reduce(last, last_of()).wait();
      EXPECT_TRUE(at::equal(last, at::full({elements}, 4, at::kLong))) << "the last rank's elements";
      at::Tensor own = at::full({elements}, world->rank(), at::kLong);
      world->reduce(own, last_of(), 1).wait();
      EXPECT_EQ(own[0].item<std::int64_t>(), world->rank() == 1 ? 4 : world->rank());
    }
  });
}

TEST(Gloo, AMessageOfAnotherSizeIsAMismatchAtTheReceiverAndTheGroupGoesOn) {
  constexpr std::pair<std::int64_t, std::int64_t> kSizes[] = {{3, 5}, {5, 3}, {3, 9000}, {9000, 3}, {9000, 8000}};
  run_ranks("gloo", 2, [&](const CommunicatorPtr& world) {
    for (const auto& [sent, expected] : kSizes) {
      if (world->rank() == 0) {
        world->send(at::ones({sent}), 1, 7).wait();
        world->send(at::full({expected}, 2.0), 1, 7).wait();
        continue;
      }
      at::Tensor first = at::zeros({expected}), second = at::zeros({expected});
      const auto error = error_of([&] { world->recv(first, 0, 7).wait(); });
      EXPECT_EQ(error.kind(), CommError::Kind::kMismatch);
      EXPECT_TRUE(contains(
          error, "expected " + std::to_string(expected * 4) + " bytes, but rank 0 sent " + std::to_string(sent * 4)))
          << error.what();
      world->recv(second, 0, 7).wait();
      EXPECT_TRUE(at::equal(second, at::full({expected}, 2.0F))) << "the next message is untouched";
    }
    world->barrier().wait();
  });
}

// The receive is posted first, and completes while this rank is in a collective.
TEST(Gloo, MessagesProgressWhileTheRankWaitsForSomethingElse) {
  run_ranks("gloo", 2, [](const CommunicatorPtr& world) {
    at::Tensor tensor = at::full({300'000}, world->rank());
    if (world->rank() == 0) {
      Work received = world->recv(tensor, 1, 1);
      world->barrier().wait();
      EXPECT_TRUE(received.done());
      EXPECT_EQ(tensor[299'999].item<float>(), 1) << "the message is complete without wait()";
    } else {
      world->send(tensor, 0, 1).wait();  // completes while rank 0 waits in the barrier
      world->barrier().wait();
    }
  });
}

TEST(Gloo, ARankTalksToItself) {
  run_ranks("gloo", 2, [](const CommunicatorPtr& world) {
    const int self = world->rank();
    at::Tensor before = at::zeros({10}), after = at::zeros({2000});
    Work early = world->recv(before, self, 3);
    EXPECT_FALSE(early.done());
    world->send(at::ones({10}), self, 3).wait();
    world->send(at::full({2000}, 2.0), self, 3).wait();
    early.wait();
    world->recv(after, self, 3).wait();
    EXPECT_EQ(before.sum().item<float>() + after.sum().item<float>(), 4010);
    world->send(at::ones({4}), self).wait();
    EXPECT_EQ(error_of([&] { world->recv(before, self).wait(); }).kind(), CommError::Kind::kMismatch);
  });
}

TEST(Gloo, MessagesOfARankThatLeftStillArrive) {
  run_ranks("gloo", 3, [](const CommunicatorPtr& world) {
    const at::Tensor own = at::full({50'000}, world->rank(), at::kFloat);
    if (world->rank() != 0) return world->gather({}, own, 0).wait();
    const at::Tensor all = at::zeros({150'000});
    world->gather(all, own, 0).wait();
    EXPECT_EQ(all.sum().item<double>(), 150'000);
  });
}

// Child groups have their own connections, so groups may end in any order.
TEST(Gloo, GroupsMayEndInAnyOrder) {
  run_ranks("gloo", 4, [](const CommunicatorPtr& world) {
    auto half = world->split(world->rank() % 2, -world->rank());
    auto quarter = half->split(half->rank(), 0);
    EXPECT_EQ(quarter->size(), 1);
    half.reset();
    quarter->barrier().wait();
    auto again = world->split(world->rank() == 3 ? -1 : 0, 0);
    EXPECT_EQ(again == nullptr, world->rank() == 3);
    if (!again) return;
    at::Tensor sum = at::ones({3}, at::kLong);
    again->all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum[2].item<std::int64_t>(), 3) << "though rank 3 may have left the world";
  });
}

TEST(Gloo, WorldsLeaveNoThreadsAndNoFilesBehind) {
  const auto connect_once = [] {
    run_ranks("gloo", 2, [](const CommunicatorPtr& world) {
      at::Tensor sum = at::ones({10});
      world->all_reduce(sum, Reduction::kSum).wait();
      ASSERT_EQ(sum[0].item<float>(), 2);
    });
  };
  connect_once();
  // A joined thread may still be listed for a moment.
  const auto settled = [](const char* folder, std::size_t most) {
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (entries(folder) > most && Clock::now() < deadline) std::this_thread::yield();
    return entries(folder);
  };
  const auto threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  for (int i = 0; i < 200; ++i) connect_once();
  EXPECT_LE(settled("/proc/self/task", threads), threads);
  EXPECT_LE(settled("/proc/self/fd", files), files);
}

}  // namespace
}  // namespace phalanx::testing
