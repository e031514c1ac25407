// SPDX-License-Identifier: Apache-2.0
// Tests of Work, the order of operations, and threads.
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "framework/testing/conformance/suite.h"

namespace phalanx::testing {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class Ordering : public Suite {};
INSTANTIATE_TEST_SUITE_P(Ranks, Ordering, ::testing::ValuesIn(world_sizes()), ranks_of);

TEST_P(Ordering, OperationsCompleteInOrderOfLaunch) {
  run([](const CommunicatorPtr& world) {
    std::vector<at::Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      tensors.push_back(at::full({1 + 997 * i}, world->rank() + i, at::kDouble));
      works.push_back(world->all_reduce(tensors.back(), Reduction::kMax));
    }
    works.back().wait();
    for (int i = 0; i < 20; ++i) {
      EXPECT_TRUE(works[i].done());
      works[i].wait();
      EXPECT_EQ(tensors[i][0].item<double>(), world->size() - 1 + i);
    }
  });
}

// One tensor is passed from operation to operation.
TEST_P(Ordering, AnOperationSeesTheResultOfTheOneBefore) {
  run([](const CommunicatorPtr& world) {
    const int size = world->size(), last = size - 1;
    at::Tensor part = at::zeros({1}, at::kLong), all = at::full({size}, world->rank(), at::kLong);
    std::vector<Work> works;
    works.push_back(world->broadcast(all, last));                        // the last rank, ...
    works.push_back(world->reduce_scatter(part, all, Reduction::kSum));  // last x size
    works.push_back(world->all_gather(all, part));                       // the same, from each rank
    works.push_back(world->all_reduce(all, Reduction::kMax));            // unchanged
    works.push_back(world->reduce(all, Reduction::kSum, last));          // last x size x size, on the last rank
    works.push_back(world->scatter(part, all, last));                    // sent to each rank
    works.push_back(world->barrier());
    works.push_back(world->all_to_all(all, all.new_full({size}, 7)));  // sevens
    works.push_back(world->gather(all, part, 0));                      // on rank 0: the scattered values
    for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
    EXPECT_EQ(part.item<std::int64_t>(), last * size * size);
    EXPECT_TRUE(at::equal(all, at::full({size}, world->rank() == 0 ? last * size * size : 7, at::kLong)));
  });
}

TEST_P(Ordering, AWorkDroppedWithoutWaitIsFinishedFirst) {
  run([](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({5000});
    {
      Work work = world->all_reduce(tensor, Reduction::kSum);
    }
    EXPECT_EQ(tensor[0].item<float>(), world->size());
  });
}

TEST_P(Ordering, AWorkKeepsItsTensorsUntilItIsDone) {
  run([](const CommunicatorPtr& world) {
    at::Tensor output = at::zeros({1000 * world->size()}), input = at::full({1000}, world->rank(), at::kFloat);
    Work work = world->all_gather(output, input);
    input.reset();
    work.wait();
    EXPECT_EQ(output.sum().item<float>(), 500 * world->size() * (world->size() - 1));
    EXPECT_EQ(output.use_count(), 1u);
  });
}

TEST_P(Ordering, AWorkMayOutliveItsCommunicator) {
  run([](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({5000});
    auto group = world->split(0, 0);
    Work work = group->all_reduce(tensor, Reduction::kSum);
    group.reset();
    work.wait();
    EXPECT_EQ(tensor[4999].item<float>(), world->size());
  });
}

// If launching waited for peers, it would take until the last of them arrives.
TEST_P(Ordering, LaunchingDoesNotWaitForPeers) {
  constexpr auto kLate = milliseconds(600);
  run([&](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({100'000});
    world->barrier().wait();
    if (world->rank() != 0) std::this_thread::sleep_for(kLate);
    const auto start = Clock::now();
    Work work = world->all_reduce(tensor, Reduction::kSum);
    EXPECT_LT(Clock::now() - start, kLate / 2);
    work.wait();
    EXPECT_EQ(tensor[0].item<float>(), world->size());
  });
}

// Uses the clock that the ranks of a host share: no rank leaves before the last one has arrived.
TEST_P(Ordering, BarrierWaitsForTheLastRank) {
  run([](const CommunicatorPtr& world) {
    const auto now = [] { return at::full({1}, Clock::now().time_since_epoch().count(), at::kLong); };
    for (int last = 0; last < world->size(); ++last) {
      if (world->rank() == last) std::this_thread::sleep_for(milliseconds(5));
      const at::Tensor came = now();
      world->barrier(Seconds(30)).wait();
      const at::Tensor left = now();
      world->all_reduce(came, Reduction::kMax).wait();
      world->all_reduce(left, Reduction::kMin).wait();
      EXPECT_LE(came.item<std::int64_t>(), left.item<std::int64_t>());
    }
  });
}

// Many operations and regions leave no state behind that could affect a later one.
TEST_P(Ordering, ManyOperationsDoNotAffectEachOther) {
  run([](const CommunicatorPtr& world) {
    for (int i = 0; i < 200; ++i) {
      at::Tensor tensor = i % 2 == 0 ? world->allocate({2000}, at::kFloat) : at::zeros({2000});
      tensor.fill_(i);
      world->all_reduce(tensor, Reduction::kSum).wait();
      ASSERT_EQ(tensor[1999].item<float>(), i * world->size());
    }
  });
}

// Threads that launch in turn, in the same order on all ranks, and wait in any order.
TEST_P(Ordering, SeveralThreadsLaunch) {
  run([](const CommunicatorPtr& world) {
    constexpr int kThreads = 3, kRounds = 60;
    std::atomic<int> turn{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = t; i < kRounds; i += kThreads) {
          at::Tensor tensor = at::full({i % 4 == 0 ? 5000 : 1}, i + world->rank(), at::kLong);
          while (turn.load() != i) std::this_thread::yield();
          Work work = world->all_reduce(tensor, Reduction::kMax);
          turn.store(i + 1);
          work.wait();
          EXPECT_EQ(tensor[0].item<std::int64_t>(), i + world->size() - 1) << "thread " << t;
        }
      });
    }
  });
}

// One Work is passed to another thread.
TEST_P(Ordering, AnotherThreadMayWait) {
  run([](const CommunicatorPtr& world) {
    at::Tensor tensor = at::ones({5000});
    Work work = world->all_reduce(tensor, Reduction::kSum);
    std::jthread([&] { work.wait(); }).join();
    EXPECT_TRUE(work.done());
    EXPECT_EQ(tensor[0].item<float>(), world->size());
  });
}

// Each thread waits for the Works of its own, which another thread has launched.
TEST_P(Ordering, SeveralThreadsWaitForDifferentWorks) {
  run([](const CommunicatorPtr& world) {
    constexpr int kThreads = 3, kWorks = 20;
    std::vector<std::vector<Work>> works(kThreads);
    std::vector<std::vector<at::Tensor>> tensors(kThreads);
    for (int i = 0; i < kThreads * kWorks; ++i) {
      tensors[i % kThreads].push_back(at::full({i % 4 == 0 ? 5000 : 1}, i + world->rank(), at::kLong));
      works[i % kThreads].push_back(world->all_reduce(tensors[i % kThreads].back(), Reduction::kMax));
    }
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = kWorks - 1; i >= 0; --i) {
          works[t][i].wait();
          EXPECT_TRUE(works[t][i].done());
          EXPECT_EQ(tensors[t][i][0].item<std::int64_t>(), i * kThreads + t + world->size() - 1);
        }
      });
    }
  });
}

}  // namespace
}  // namespace phalanx::testing
