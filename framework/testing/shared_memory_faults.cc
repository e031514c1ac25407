// SPDX-License-Identifier: Apache-2.0
// Faults that backends with shared memory detect themselves: mismatched calls, absent and lost peers.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "framework/base/error.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/fault.h"
#include "framework/testing/worlds.h"

namespace phalanx::testing {
namespace {

TEST(SharedMemoryFaults, DifferentOperationsAreNamedOnAllRanksAndTheGroupGoesOn) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({5000});
    const auto error = error_of([&] {
      (world->rank() == 1 ? world->broadcast(tensor, 2) : world->all_reduce(tensor, Reduction::kMax)).wait();
    });
    EXPECT_EQ(error.kind(), CommError::Kind::kMismatch);
    EXPECT_TRUE(
        contains(error, "rank 0 calls all_reduce(max) of 5000 Float, rank 1 calls broadcast(root 2) of 5000 Float"))
        << error.what();
    EXPECT_EQ(tensor.use_count(), 1u) << "the operation must release it";
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), 3);
  });
}

// Returns the error of `call` if it throws one.
std::optional<CommError> possible_error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const CommError& error) {
    return error;
  }
  return std::nullopt;
}

// Rank 1 calls each operation with a different argument. Each call is a mismatch, and the group remains usable. A rank
// that needs nothing from the other, such as a root that only sends, learns of it in the next operation, which is
// performed nevertheless.
TEST(SharedMemoryFaults, CallsThatDifferInOneArgumentAreMismatches) {
  using Launch = std::function<Work(Communicator & world, bool odd)>;
  const auto f = [](std::int64_t elements) { return at::zeros({elements}); };
  const auto sum = Reduction::kSum;
  const auto mine = [](const char* name) { return Reduction::custom<float>(name, [](auto, auto) {}); };
  const Launch launches[] = {
      [&](auto& world, bool odd) { return world.all_reduce(f(odd ? 9 : 8), sum); },
      [&](auto& world, bool odd) { return world.all_reduce(f(8).to(odd ? at::kDouble : at::kFloat), sum); },
      [&](auto& world, bool odd) { return world.all_reduce(f(8), odd ? Reduction::kMin : Reduction::kMax); },
      [&](auto& world, bool odd) { return world.all_reduce(f(8), mine(odd ? "mine" : "yours")); },
      [&](auto& world, bool odd) { return world.broadcast(f(8), odd); },
      [&](auto& world, bool odd) { return world.broadcast(f(odd ? 70'000 : 8), 0); },
      [&](auto& world, bool odd) { return world.reduce(f(8), sum, odd); },
      [&](auto& world, bool odd) { return world.reduce(f(8), odd ? sum : Reduction::kProduct, 0); },
      [&](auto& world, bool odd) { return world.reduce_scatter(f(odd ? 5 : 4), f(odd ? 10 : 8), sum); },
      [&](auto& world, bool odd) {
        return odd ? world.reduce_scatter(f(4), f(8), sum) : world.reduce_scatter(f(3), f(8), sum, {3, 5});
      },
      [&](auto& world, bool odd) { return world.all_gather(f(odd ? 10 : 8), f(odd ? 5 : 4)); },
      [&](auto& world, bool odd) { return odd ? world.all_gather(f(8), f(5), {3, 5}) : world.all_gather(f(8), f(4)); },
      [&](auto& world, bool odd) { return world.gather(f(8), f(4), odd); },
      [&](auto& world, bool odd) { return world.gather(f(8), f(odd ? 5 : 4), 0); },
      [&](auto& world, bool odd) { return world.scatter(f(4), f(8), odd); },
      [&](auto& world, bool odd) { return world.scatter(f(odd ? 5 : 4), f(8), 0); },
      [&](auto& world, bool odd) { return world.all_to_all(f(odd ? 10 : 8), f(odd ? 10 : 8)); },
      [&](auto& world, bool odd) {
        return odd ? world.all_to_all(f(8), f(8)) : world.all_to_all(f(8), f(8), {4, 4}, {4, 4});
      },
      [&](auto& world, bool odd) { return odd ? world.barrier() : world.all_to_all(f(8), f(8)); },
      [&](auto& world, bool odd) { return odd ? world.gather(f(8), f(4), 1) : world.scatter(f(4), f(8), 1); },
  };
  run_ranks(kBackend, 2, [&](const CommunicatorPtr& world) {
    int number = 0;
    for (const auto& launch : launches) {
      const auto error = possible_error_of([&] { launch(*world, world->rank() == 1).wait(); });
      at::Tensor tensor = at::ones({3});
      const auto late = possible_error_of([&] { world->all_reduce(tensor, sum).wait(); });
      EXPECT_EQ(tensor[2].item<float>(), 2) << "after launch " << number;
      EXPECT_NE(error.has_value(), late.has_value()) << "launch " << number;
      const auto& found = error ? error : late;
      if (!found) continue;
      EXPECT_EQ(found->kind(), CommError::Kind::kMismatch) << "launch " << number << ": " << found->what();
      EXPECT_TRUE(contains(*found, "rank 0 calls ") && contains(*found, "rank 1 calls ")) << found->what();
      ++number;
    }
  });
}

// The error that comes late names the operation in which the ranks disagreed.
TEST(SharedMemoryFaults, ARootThatWentOnLearnsOfAMismatchInItsNextOperation) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    const int rank = world->rank();
    world->barrier().wait();
    const auto now = possible_error_of([&] { world->broadcast(at::zeros({rank == 1 ? 9 : 8}), 0).wait(); });
    const auto late = possible_error_of([&] { world->barrier().wait(); });
    EXPECT_EQ(now.has_value(), rank == 1);
    EXPECT_EQ(late.has_value(), rank != 1);
    for (const auto& error : {now, late}) {
      if (!error) continue;
      EXPECT_EQ(error->kind(), CommError::Kind::kMismatch);
      EXPECT_TRUE(contains(*error, "broadcast #2 of world, rank " + std::to_string(rank) + " of 3: ranks disagree"))
          << error->what();
      EXPECT_TRUE(contains(*error, "rank 1 calls broadcast(root 0) of 9 Float")) << error->what();
    }
    world->barrier().wait();
  });
}

// The root has to wait for room in the shared memory, since the others take nothing from it.
TEST(SharedMemoryFaults, ARootThatHasToWaitLearnsOfAMismatchAtOnce) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    const at::Tensor large = at::zeros({3 << 20});
    const auto error = error_of(
        [&] { (world->rank() == 0 ? world->broadcast(large, 0) : world->all_reduce(large, Reduction::kSum)).wait(); });
    EXPECT_EQ(error.kind(), CommError::Kind::kMismatch) << error.what();
    at::Tensor tensor = at::ones({200'000});
    world->broadcast(large.fill_(world->rank() == 0 ? 7 : 0), 0).wait();
    EXPECT_EQ(large[(3 << 20) - 1].item<float>(), 7) << "the ring goes on where its owner is";
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[199'999].item<float>(), 3);
  });
}

// Rank 1 sends 40 or 40,000 elements to rank 0, which expects 400.
TEST(SharedMemoryFaults, InconsistentUnevenExchangesAreAMismatchAndTheGroupGoesOn) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    for (const std::int64_t sent : {40, 40'000}) {
      const bool odd = world->rank() == 1;
      const auto error = error_of([&] {
        if (odd) {
          world->all_to_all(at::zeros({5}), at::zeros({sent}), {5, 0}, {sent, 0}).wait();
        } else {
          world->all_to_all(at::zeros({400}), at::zeros({5}), {0, 400}, {0, 5}).wait();
        }
      });
      EXPECT_EQ(error.kind(), CommError::Kind::kMismatch) << error.what();
      EXPECT_TRUE(contains(error, "all_to_all")) << error.what();
      world->barrier().wait();
    }
  });
}

// Differences in size, shape, dtype, and in sharing.
TEST(SharedMemoryFaults, AllocationsThatDifferAreAMismatchAndTheGroupGoesOn) {
  const struct {
    std::function<void(Communicator& world)> first, second;
    std::string first_text, second_text;
  } cases[] = {
      {[](auto& world) { (void)world.allocate({1000}, at::kFloat); },
       [](auto& world) { (void)world.allocate({200'000}, at::kFloat); }, "allocate of 1000 Float",
       "allocate of 200000 Float"},
      {[](auto& world) { (void)world.allocate_shared({1000}, at::kFloat); },
       [](auto& world) { (void)world.allocate_shared({200'000}, at::kFloat); }, "allocate_shared of 1000 Float",
       "allocate_shared of 200000 Float"},
      {[](auto& world) { (void)world.allocate({1000}, at::kFloat); },
       [](auto& world) { (void)world.allocate_shared({1000}, at::kFloat); }, "allocate of 1000 Float",
       "allocate_shared of 1000 Float"},
      {[](auto& world) { (void)world.allocate({1000}, at::kFloat); },
       [](auto& world) { (void)world.allocate({1000}, at::kInt); }, "allocate of 1000 Float", "allocate of 1000 Int"},
      {[](auto& world) { (void)world.allocate_shared({20, 50}, at::kFloat); },
       [](auto& world) { (void)world.allocate_shared({50, 20}, at::kFloat); }, "allocate_shared of 1000 Float",
       "allocate_shared of 1000 Float with other counts or sizes"},
  };
  run_ranks(kBackend, 2, [&](const CommunicatorPtr& world) {
    for (const auto& [first, second, first_text, second_text] : cases) {
      const auto error = error_of([&] { (world->rank() == 0 ? first : second)(*world); });
      EXPECT_EQ(error.kind(), CommError::Kind::kMismatch) << error.what();
      EXPECT_TRUE(contains(error, "rank 0 calls " + first_text + ", rank 1 calls " + second_text)) << error.what();
      const at::Tensor memory = world->allocate({100'000}, at::kFloat).fill_(1);
      world->all_reduce(memory, Reduction::kSum).wait();
      EXPECT_EQ(memory[99'999].item<float>(), 2) << "after " << error.what();
    }
  });
}

TEST(SharedMemoryFaults, ASplitByOneRankAloneIsAMismatchAndTheGroupGoesOn) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const auto other = error_of([&] {
      if (world->rank() == 0) {
        (void)world->split(0, 0);
      } else {
        world->barrier().wait();
      }
    });
    EXPECT_EQ(other.kind(), CommError::Kind::kMismatch) << other.what();
    world->barrier().wait();
  });
}

TEST(SharedMemoryFaults, APeerThatIsGoneIsNamedWhileAnotherIsMerelyLate) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 2) return;  // gone
    if (world->rank() == 1) std::this_thread::sleep_for(std::chrono::seconds(2));
    const auto start = std::chrono::steady_clock::now();
    const auto error = error_of([&] { world->barrier().wait(); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1)) << error.what();
  });
}

TEST(SharedMemoryFaults, AnAbsentPeerIsNamedAfterTheTimeout) {
  const auto body = [](const CommunicatorPtr& world) {
    if (world->rank() == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(900));
      const auto error = error_of([&] { world->barrier().wait(); });
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << "the others have given up: " << error.what();
      return;
    }
    at::Tensor tensor = at::ones({10});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    if (error.kind() == CommError::Kind::kTimeout) {
      EXPECT_TRUE(contains(error, "all_reduce #1 of world, rank " + std::to_string(world->rank()) + " of 3"))
          << error.what();
      EXPECT_TRUE(contains(error, "for rank 2")) << error.what();
    } else {
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
    }
    const auto later = error_of([&] { world->barrier().wait(); });
    EXPECT_STREQ(later.what(), error.what()) << "the group is broken, and the cause stays the same";
  };
  run_ranks(kBackend, 3, body, Seconds(0.3));
}

TEST(SharedMemoryFaults, APeerThatLeavesIsNamedAtOnce) {
  run_ranks(kBackend, 3, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    if (world->rank() == 1) return;  // its body ends here and destroys its communicator
    const auto start = std::chrono::steady_clock::now();
    at::Tensor tensor = at::ones({100'000});
    const auto error = error_of([&] { world->all_reduce(tensor, Reduction::kSum).wait(); });
    EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10)) << "far below the timeout";
  });
}

}  // namespace
}  // namespace phalanx::testing
