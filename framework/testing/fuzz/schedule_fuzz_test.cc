// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "framework/backends/shared_memory/schedule_point.h"
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
    if (static_cast<Op>(op) == Op::kShrink) continue;  // it would end its group: see shared_memory_losses.cc
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
