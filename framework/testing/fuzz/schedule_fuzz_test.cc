// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "framework/backends/inproc/heap_fabric.h"
#include "framework/backends/shared_memory/communicator.h"
#include "framework/backends/shared_memory/schedule_point.h"
#include "framework/comm/backend.h"
#include "framework/testing/fuzz/run_schedule.h"

namespace phalanx::testing {
namespace {

std::uint64_t schedules() {
  const char* given = std::getenv("PHALANX_SCHEDULES");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : 500;
}

// There must be no hang, no wrong result, and no error except the loss of a killed peer.
TEST(ScheduleFuzz, EverySeedPasses) {
  std::uint64_t points = 0;
  int killed = 0;
  for (std::uint64_t seed = 1; seed <= schedules(); ++seed) {
    const auto outcome = run_schedule(seed);
    for (const auto& fault : outcome.faults) ADD_FAILURE() << "--seed " << seed << ": " << fault;
    points += outcome.points;
    killed += outcome.killed >= 0;
  }
  EXPECT_GT(points, 10 * schedules());
  EXPECT_GT(killed, static_cast<int>(schedules() / 10));
  std::printf("%llu schedules, %llu points, %d with a rank killed\n", static_cast<unsigned long long>(schedules()),
              static_cast<unsigned long long>(points), killed);
}

// The receiver may take the last bytes, and leave, between two looks of the sender.
TEST(ScheduleFuzz, ASendSucceedsIfItsReceiverLeavesWithTheMessage) {
  using Reach = inproc::HeapFabric::Reach;
  for (const Reach reach : {Reach::kEverything, Reach::kBlocks, Reach::kFetched}) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
      Schedule schedule(seed, 2, std::nullopt,
                        [&] { std::fprintf(stderr, "seed %d hangs\n", static_cast<int>(seed)); });
      const auto store = make_hash_store(Seconds(60));
      std::string fault;
      const auto play = [&](int rank) {
        const RankInfo rank_info{.rank = rank, .size = 2, .local_rank = rank, .local_size = 2};
        const ConnectOptions options{
            .rank_info = rank_info, .store = store, .timeout = Seconds(1e6), .progress_thread = false};
        auto world = shared_memory::connect("inproc", options, std::make_unique<inproc::HeapFabric>(reach));
        schedule.enter(rank);
        try {
          const at::Tensor message = at::full({60'000}, rank);
          (rank == 0 ? world->send(message, 1) : world->recv(message, 0)).wait();
        } catch (const std::exception& error) {
          fault = error.what();
        }
        world.reset();
        schedule.leave();
      };
      std::jthread receiver(play, 1);
      play(0);
      receiver.join();
      EXPECT_EQ(fault, "") << "reach " << static_cast<int>(reach) << ", seed " << seed;
    }
  }
}

TEST(ScheduleFuzz, ASeedDeterminesItsSchedule) {
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto first = run_schedule(seed);
    for (int i = 0; i < 3; ++i) {
      const auto again = run_schedule(seed);
      EXPECT_EQ(again.trace, first.trace) << "--seed " << seed;
      EXPECT_EQ(again.points, first.points);
      EXPECT_EQ(again.killed, first.killed);
      EXPECT_EQ(again.finished, first.finished);
    }
    traces.insert(first.trace);
  }
  EXPECT_EQ(traces.size(), 20u);
}

TEST(ScheduleFuzz, ProgramsContainEveryOperation) {
  std::map<Op, int> counts;
  int mismatches = 0;
  std::map<std::size_t, int> groups;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    const Program program(seed);
    ++groups[program.groups.size()];
    for (const auto& step : program.steps) {
      ++counts[step.op];
      mismatches += step.odd_one >= 0;
    }
  }
  for (int op = 1; op <= static_cast<int>(Op::kCustom); ++op) {
    if (static_cast<Op>(op) == Op::kRecv) continue;    // a step with Op::kSend also receives
    if (static_cast<Op>(op) == Op::kShrink) continue;  // it would end its group: see survivors.cc
    EXPECT_GT(counts[static_cast<Op>(op)], 50) << to_string(static_cast<Op>(op));
  }
  EXPECT_GT(mismatches, 50);
  EXPECT_GT(groups.size(), 2u);
}

// Two ranks that wait for each other forever.
TEST(ScheduleFuzzDeathTest, AHangIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Schedule schedule(7, 2, std::nullopt, [] { std::fputs("it hangs\n", stderr); }, 1000);
        std::vector<std::jthread> threads;
        for (int rank = 0; rank < 2; ++rank) {
          threads.emplace_back([&, rank] {
            schedule.enter(rank);
            for (;;) shared_memory::schedule_point();
          });
        }
      },
      "it hangs");
}

}  // namespace
}  // namespace phalanx::testing
