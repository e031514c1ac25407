// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/flow.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "framework/backends/inproc/heap_fabric.h"
#include "framework/backends/shared_memory/two_shot.h"
#include "framework/testing/fuzz/schedule.h"

namespace phalanx::shared_memory {
namespace {

using inproc::HeapFabric;

constexpr int kRanks = 3;
const Call kCall{.elements = 1, .op = Op::kAllGather, .dtype = c10::kLong};

// Runs body(group) on each rank of a group, in threads that reach only the memory of the group. `schedule` is optional.
void run_group(const std::function<void(Group& group)>& body, Seconds timeout = Seconds(60),
               testing::Schedule* schedule = nullptr) {
  const auto memory = HeapFabric().create(ControlBlock::bytes(kRanks)).memory;
  std::vector<std::jthread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      Group group({.name = "world", .rank = rank, .size = kRanks, .timeout = timeout}, memory,
                  std::make_unique<HeapFabric>(HeapFabric::Reach::kBlocks), [] {});
      if (schedule != nullptr) schedule->enter(rank);
      body(group);
      if (schedule != nullptr) schedule->leave();
    });
  }
}

// The content of a piece.
std::int64_t value_of(int rank, std::int64_t operation, std::int64_t index) {
  return (operation * kRanks + rank) * 1'000'000 + index;
}

// Lets every rank send `pieces` pieces of a number to all others, and checks what this rank receives.
// on_piece(index, rank) is called before this rank writes a piece.
void exchange_numbers(
    Group& group, std::int64_t operation, std::int64_t pieces,
    const std::function<void(std::int64_t)>& on_piece = [](std::int64_t) {}) {
  Outflow out(group, pieces, [&](std::int64_t index, std::byte* piece) {
    on_piece(index);
    const std::int64_t value = value_of(group.rank(), operation, index);
    std::memcpy(piece, &value, sizeof(value));
    return kAllReaders;
  });
  group.begin(kCall.op);
  const std::uint64_t first = group.ring().position();
  group.post({.call = kCall, .input = {first, kRing}, .output = {}});
  group.await_posts();
  SourceList sources;
  for (int peer = 0; peer < kRanks; ++peer) {
    if (peer != group.rank()) sources.push_back({.rank = peer, .pieces = pieces});
  }
  Inflow in(
      group, sources, [&](int peer, std::int64_t index) { return group.first_piece_of(peer) + index; },
      [&](int peer, std::int64_t index, const std::byte* piece) {
        std::int64_t value = 0;
        std::memcpy(&value, piece, sizeof(value));
        EXPECT_EQ(value, value_of(peer, operation, index)) << "from rank " << peer;
      });
  run_flows(group, out, in);
}

// The rings wrap around several times, and each rank is now ahead and now behind.
TEST(Flow, MovesEveryPieceInAnyInterleaving) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    testing::Schedule schedule(seed, kRanks, std::nullopt, [] { ADD_FAILURE() << "a rank hangs"; });
    run_group(
        [&](Group& group) {
          for (const std::int64_t pieces : {1, 300, 0, 129, 128, 7}) {
            exchange_numbers(group, static_cast<std::int64_t>(seed), pieces);
            schedule.progress(false);
          }
        },
        Seconds(1e6), &schedule);
  }
}

// No memory is within reach of other ranks.
struct NoAddresses final : AddressBook {
  Location locate(const void*, std::size_t) const override { return {}; }
  Addresses addresses(const Group&, Location Post::*) const override { return {}; }
};

// A rank may have combined all chunks before it takes the first result. Owners must not use those slots again until
// then, even in the next operation.
TEST(Flow, ResultsOfTwoShotsStayUntilTheyAreTaken) {
  constexpr std::int64_t kChunks = 40;
  constexpr auto kCount = static_cast<std::int64_t>(kChunks * kPieceBytes / sizeof(std::int64_t));
  run_group([](Group& group) {
    const Call call{.elements = kCount, .op = Op::kAllReduce, .dtype = c10::kLong};
    std::vector<std::int64_t> numbers(kCount, group.rank() + 1);
    const Elements elements{reinterpret_cast<std::byte*>(numbers.data()), kCount, c10::kLong};
    const Reduction sum = Reduction::kSum;
    const NoAddresses book;
    const Execution execution{group, book, call};
    TwoShot shots(execution, elements, sum);
    execution.post(elements, {}, shots);
    group.await_posts();
    while (!shots.done()) {
      group.await([&] { return shots.ready(); }, [&](int peer) { return !shots.awaits(peer); });
      shots.step();
    }
    for (int peer = 0; peer < kRanks; ++peer) {
      const auto taken = group.block().taken(peer)[group.rank()].pieces.load();
      EXPECT_EQ(taken, 0u) << "rank " << group.rank() << " needs the results of rank " << peer;
    }
    shots.run();
    EXPECT_EQ(numbers, std::vector<std::int64_t>(kCount, kRanks * (kRanks + 1) / 2));
  });
}

TEST(Flow, ARankThatGivesUpInTheMiddleIsNoticed) {
  run_group([](Group& group) {
    exchange_numbers(group, 0, 10);
    try {
      exchange_numbers(group, 1, 500, [&](std::int64_t index) {
        if (group.rank() == 1 && index == 200) throw std::length_error("in the middle of a piece");
      });
      ADD_FAILURE() << "rank " << group.rank() << " has missed nothing";
    } catch (const std::length_error& error) {
      group.fail(CommError(CommError::Kind::kSystem, error.what()));
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
      EXPECT_NE(std::string(error.what()).find("all_gather #2 of world, rank"), std::string::npos) << error.what();
    }
  });
}

// Rank 2 writes no more pieces but stays in the group.
TEST(Flow, ARankThatStopsInTheMiddleIsNamedAfterTheTimeout) {
  std::atomic<int> ended{0};
  run_group(
      [&](Group& group) {
        try {
          exchange_numbers(group, 0, 300, [&](std::int64_t index) {
            while (group.rank() == 2 && index == 5 && ended < 2) std::this_thread::yield();
          });
        } catch (const CommError& error) {
          if (group.rank() != 2 && error.kind() == CommError::Kind::kTimeout) {
            EXPECT_NE(std::string(error.what()).find("for rank 2"), std::string::npos) << error.what();
          } else {
            EXPECT_EQ(error.kind(), CommError::Kind::kPeerLost) << error.what();
          }
          ++ended;
        }
      },
      Seconds(0.3));
  EXPECT_EQ(ended, kRanks);
}

}  // namespace
}  // namespace phalanx::shared_memory
