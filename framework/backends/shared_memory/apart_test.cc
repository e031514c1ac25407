// SPDX-License-Identifier: Apache-2.0
// Collectives and messages of ranks that do not reach each other's tensors, as threads.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/backends/inproc/heap_fabric.h"
#include "framework/backends/shared_memory/communicator.h"
#include "framework/base/error.h"
#include "framework/comm/operations/arguments.h"
#include "framework/comm/operations/part_layout.h"
#include "framework/comm/store/store.h"

namespace phalanx::shared_memory {
namespace {

using inproc::HeapFabric;
using Reach = HeapFabric::Reach;

void run_apart(int ranks, Reach reach, const std::function<void(const CommunicatorPtr& world)>& body) {
  const auto store = make_hash_store(Seconds(60));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const ConnectOptions options{.rank_info = {rank, ranks, rank, ranks}, .store = store, .timeout = Seconds(60)};
      body(connect("apart", options, std::make_unique<HeapFabric>(reach)));
    });
  }
}

constexpr std::int64_t kLarge = 600'001;  // ints: more than a ring holds
constexpr std::int64_t kSizes[] = {0, 3, 511, 512, 513, 2000, 4096, 30'000, kLarge};

// The tensor of a rank.
at::Tensor ints(int rank, std::int64_t elements) { return at::arange(elements, at::kInt).add_(rank * 1'000'000); }

at::Tensor sum_of(int ranks, std::int64_t elements) {
  return at::arange(elements, at::kInt).mul_(ranks).add_(ranks * (ranks - 1) / 2 * 1'000'000);
}

class Apart : public ::testing::TestWithParam<int> {
 protected:
  void run(const std::function<void(const CommunicatorPtr& world, std::int64_t elements)>& body) {
    for (const auto reach : {Reach::kBlocks, Reach::kFetched}) {
      run_apart(GetParam(), reach, [&](const CommunicatorPtr& world) {
        for (const auto elements : kSizes) {
          for (int i = 0; i < 3; ++i) body(world, elements);
        }
      });
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Apart, ::testing::Values(1, 2, 3, 5),
                         [](const auto& info) { return std::to_string(info.param); });

TEST_P(Apart, Broadcast) {
  run([](const CommunicatorPtr& world, std::int64_t elements) {
    const int root = world->size() - 1;
    const auto tensor = ints(world->rank(), elements);
    world->broadcast(tensor, root).wait();
    EXPECT_TRUE(at::equal(tensor, ints(root, elements))) << elements;
  });
}

TEST_P(Apart, AllReduce) {
  run([](const CommunicatorPtr& world, std::int64_t elements) {
    const auto tensor = ints(world->rank(), elements);
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_TRUE(at::equal(tensor, sum_of(world->size(), elements))) << elements;
  });
}

TEST_P(Apart, Reduce) {
  run([](const CommunicatorPtr& world, std::int64_t elements) {
    const auto tensor = ints(world->rank(), elements);
    world->reduce(tensor, Reduction::kSum, 0).wait();
    const auto want = world->rank() == 0 ? sum_of(world->size(), elements) : ints(world->rank(), elements);
    EXPECT_TRUE(at::equal(tensor, want)) << elements;
  });
}

TEST_P(Apart, ReduceScatter) {
  run([](const CommunicatorPtr& world, std::int64_t elements) {
    const auto output = at::empty({elements}, at::kInt);
    world->reduce_scatter(output, ints(world->rank(), elements * world->size()), Reduction::kSum).wait();
    const auto all = sum_of(world->size(), elements * world->size());
    EXPECT_TRUE(at::equal(output, elements_of(all, world->rank() * elements, elements))) << elements;
  });
}

TEST_P(Apart, GatherAndScatter) {
  run([](const CommunicatorPtr& world, std::int64_t elements) {
    const auto all = ints(0, elements * world->size()), output = at::zeros({elements * world->size()}, at::kInt);
    const auto part = at::empty({elements}, at::kInt);
    world->scatter(part, all, 0).wait();
    EXPECT_TRUE(at::equal(part, elements_of(all, world->rank() * elements, elements))) << elements;
    world->gather(output, part, 0).wait();
    EXPECT_TRUE(world->rank() != 0 || at::equal(output, all)) << elements;
    world->all_gather(output, part).wait();
    EXPECT_TRUE(at::equal(output, all)) << elements;
  });
}

TEST_P(Apart, AllToAll) {
  run([](const CommunicatorPtr& world, std::int64_t elements) {
    const int size = world->size();
    const auto output = at::empty({elements * size}, at::kInt);
    world->all_to_all(output, ints(world->rank(), elements * size)).wait();
    for (int peer = 0; peer < size; ++peer) {
      const auto sent = elements_of(ints(peer, elements * size), world->rank() * elements, elements);
      EXPECT_TRUE(at::equal(elements_of(output, peer * elements, elements), sent)) << elements << " from " << peer;
    }
  });
}

// Performs an operation in one of the ways that the backend offers.
void perform(Communicator& world, Operation operation, NativeWay way) {
  ASSERT_TRUE(world.offers(way));
  operation.way = way;
  world.launch(std::move(operation)).wait();
}

TEST_P(Apart, EveryWayOfAnAllReduceGivesTheSame) {
  run([](const CommunicatorPtr& world, std::int64_t elements) {
    for (const auto way : {NativeWay::kOneShot, NativeWay::kTwoShot}) {
      const auto tensor = ints(world->rank(), elements);
      perform(*world, checked_all_reduce(*world, tensor, Reduction::kSum), way);
      EXPECT_TRUE(at::equal(tensor, sum_of(world->size(), elements))) << elements;
    }
  });
}

TEST_P(Apart, KernelCopiesGiveTheSame) {
  run_apart(GetParam(), Reach::kFetched, [](const CommunicatorPtr& world) {
    for (const auto elements : kSizes) {
      const int size = world->size();
      const auto copy = [&](Operation operation) { perform(*world, std::move(operation), NativeWay::kKernelCopy); };
      const auto all = ints(0, elements * size), output = at::zeros({elements * size}, at::kInt);
      const auto part = at::empty({elements}, at::kInt), tensor = ints(world->rank(), elements);
      copy(checked_scatter(*world, part, all, 0, {}));
      copy(checked_gather(*world, output, part, 0, {}));
      EXPECT_TRUE(world->rank() != 0 || at::equal(output, all)) << elements;
      copy(checked_all_gather(*world, output, part, {}));
      EXPECT_TRUE(at::equal(output, all)) << elements;
      copy(checked_all_to_all(*world, output, all, {}, {}));
      EXPECT_TRUE(at::equal(elements_of(output, 0, elements), part)) << elements;
      copy(checked_broadcast(*world, tensor, size - 1));
      EXPECT_TRUE(at::equal(tensor, ints(size - 1, elements))) << elements;
    }
  });
  run_apart(1, Reach::kBlocks, [](const auto& world) { EXPECT_FALSE(world->offers(NativeWay::kKernelCopy)); });
}

TEST(ApartWays, ThatDifferBetweenRanksAreAMismatch) {
  run_apart(2, Reach::kBlocks, [](const CommunicatorPtr& world) {
    auto operation = checked_all_reduce(*world, ints(0, 30'000), Reduction::kSum);
    operation.way = world->rank() == 0 ? NativeWay::kOneShot : NativeWay::kTwoShot;
    try {
      world->launch(operation).wait();
      ADD_FAILURE() << "no mismatch";
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommError::Kind::kMismatch) << error.what();
    }
    world->barrier().wait();
  });
}

// All results are the same bit for bit, whether ranks reach each other's memory or not.
TEST_P(Apart, ReductionsCombineInTheOrderOfRanks) {
  for (const std::int64_t elements : {100, 3000, 50'000}) {
    std::vector<at::Tensor> results;
    for (const auto reach : {Reach::kEverything, Reach::kBlocks}) {
      std::vector<at::Tensor> by_rank(static_cast<std::size_t>(GetParam()));
      run_apart(GetParam(), reach, [&](const CommunicatorPtr& world) {
        const auto tensor = at::arange(elements, at::kFloat).mul_(0.1F).add_(1.0F / (3.0F + world->rank()));
        world->all_reduce(tensor, Reduction::kMean).wait();
        by_rank[static_cast<std::size_t>(world->rank())] = tensor;
      });
      results.insert(results.end(), by_rank.begin(), by_rank.end());
    }
    for (const auto& result : results) EXPECT_TRUE(at::equal(result, results[0])) << elements;
  }
}

// The sender does nothing until the message has arrived, which is larger than the channel.
TEST(ApartMessages, AReceiverFetchesWhatItsSenderDoesNotWrite) {
  std::atomic<bool> arrived{false};
  run_apart(2, Reach::kFetched, [&](const CommunicatorPtr& world) {
    for (int i = 0; i < 3; ++i) {
      world->barrier().wait();
      if (world->rank() == 0) {
        Work send = world->send(ints(i, kLarge), 1);
        while (!arrived.exchange(false)) std::this_thread::yield();
        send.wait();
      } else {
        const auto tensor = at::empty({kLarge}, at::kInt);
        world->recv(tensor, 0).wait();
        EXPECT_TRUE(at::equal(tensor, ints(i, kLarge)));
        arrived = true;
      }
    }
  });
}

// Both sides work at the same time, on more messages than the channel has slots.
TEST(ApartMessages, ArriveInOrderWhateverTheirSizes) {
  for (const auto reach : {Reach::kBlocks, Reach::kFetched}) {
    run_apart(2, reach, [&](const CommunicatorPtr& world) {
      const int peer = 1 - world->rank();
      std::vector<Work> works;
      std::vector<at::Tensor> received;
      for (int round = 0; round < 20; ++round) {
        for (const auto elements : kSizes) {
          if (elements == kLarge && round % 7 != 0) continue;
          works.push_back(world->send(ints(world->rank() + round, elements), peer));
          received.push_back(at::full({elements}, -1, at::kInt));
          works.push_back(world->recv(received.back(), peer));
        }
      }
      wait_all(works);
      auto next = received.begin();
      for (int round = 0; round < 20; ++round) {
        for (const auto elements : kSizes) {
          if (elements == kLarge && round % 7 != 0) continue;
          EXPECT_TRUE(at::equal(*next++, ints(peer + round, elements))) << round << ": " << elements;
        }
      }
    });
  }
}

TEST(SharedMemory, ACheckEndsTheWaitsOfAGroupAndOfItsParts) {
  const auto store = make_hash_store(Seconds(60));
  std::atomic<bool> enough = false;
  const auto connect_rank = [&](int rank) {
    const ConnectOptions options{.rank_info = {rank, 2, rank, 2},
                                 .store = store,
                                 .timeout = Seconds(60),
                                 .progress_thread = false,
                                 .check = [&] {
                                   if (enough) throw CommError(CommError::Kind::kTimeout, "enough");
                                 }};
    const auto world = connect("apart", options, std::make_unique<HeapFabric>(Reach::kBlocks));
    return std::array<CommunicatorPtr, 3>{world, world->split(0, 0), world->split(0, 0)};
  };
  auto other = std::async(std::launch::async, connect_rank, 1);
  const auto [world, part, second] = connect_rank(0);
  const auto peer = other.get();
  enough = true;
  const auto expect_end = [](Work work) {
    try {
      work.wait();
      ADD_FAILURE();
    } catch (const CommError& error) {
      EXPECT_STREQ(error.what(), "enough");
    }
  };
  expect_end(part->barrier());
  expect_end(second->recv(at::zeros({3}), 1));
  expect_end(world->barrier());
}

// Messages that were sent completely are received even if the sender is gone, however many slots they take.
TEST(ApartMessages, OutliveTheirSender) {
  constexpr std::int64_t kFits = 200'000;  // ints, in the slots of a channel
  run_apart(2, Reach::kBlocks, [&](const CommunicatorPtr& world) {
    if (world->rank() == 1) {
      world->send(ints(5, kFits), 0).wait();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const auto tensor = at::empty({kFits}, at::kInt);
    world->recv(tensor, 1).wait();
    EXPECT_TRUE(at::equal(tensor, ints(5, kFits)));
  });
}

}  // namespace
}  // namespace phalanx::shared_memory
