// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/observe/monotonic_clock.h"
#include "framework/observe/trace/chrome_trace.h"
#include "framework/observe/trace/clock_offset.h"
#include "framework/observe/trace/operation_trace.h"
#include "framework/observe/trace/operator_trace.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using testing::run_ranks;

TEST(ClockOffset, IsAccurateToHalfOfTheRoundTrip) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const std::int64_t ahead = 1'000'000'000LL * world->rank();
    const auto offset = estimate_clock_offset(*world, [ahead] { return monotonic_ns() + ahead; });
    EXPECT_LE(std::abs(offset.ns + ahead), offset.round_trip_ns / 2 + 1) << "rank " << world->rank();
  });
}

TEST(ClockOffset, IsZeroWithinAHost) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto offset = monotonic_clock_offset(*world);
    EXPECT_EQ(offset.ns, 0);
    EXPECT_EQ(offset.round_trip_ns, 0);
  });
}

TEST(ChromeTrace, HasRanksAsProcessesAndLanesAsThreads) {
  const RankTrace late{.rank = 1,
                       .host = "b \"quoted\"",
                       .clock_offset_ns = 500,
                       .origin_ns = 1000,
                       .lanes = {"phases", "communication"},
                       .events = {{.name = "all_reduce",
                                   .lane = "communication",
                                   .begin_ns = 2500,
                                   .end_ns = 4500,
                                   .details = {{"group", "world"}}}}};
  const RankTrace first{.rank = 0, .host = "a", .lanes = {"phases"}};
  const auto trace = nlohmann::json::parse(to_chrome_trace({to_chrome_events(first), to_chrome_events(late)}));
  std::vector<nlohmann::json> complete, names;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") complete.push_back(event);
    if (event.at("name") == "thread_name") names.push_back(event);
  }
  ASSERT_EQ(complete.size(), 1u);
  EXPECT_EQ(complete[0].at("pid"), 1);
  EXPECT_EQ(complete[0].at("tid"), 1);
  EXPECT_EQ(complete[0].at("ts"), 2.0) << "microseconds since the origin, on the clock of rank 0";
  EXPECT_EQ(complete[0].at("dur"), 2.0);
  EXPECT_EQ(complete[0].at("args").at("group"), "world");
  ASSERT_EQ(names.size(), 3u);
  EXPECT_EQ(names[2].at("args").at("name"), "communication");
}

TEST(SpreadOverLanes, KeepsNestedEventsAndSeparatesOverlappingOnes) {
  std::vector<TraceEvent> events{{.name = "overlaps", .lane = {}, .begin_ns = 50, .end_ns = 150},
                                 {.name = "inner", .lane = {}, .begin_ns = 10, .end_ns = 40},
                                 {.name = "outer", .lane = {}, .begin_ns = 0, .end_ns = 100},
                                 {.name = "later", .lane = {}, .begin_ns = 150, .end_ns = 160}};
  spread_over_lanes(events, "lane");
  std::vector<std::string> placed;
  for (const auto& event : events) placed.push_back(event.name + " " + event.lane);
  EXPECT_THAT(placed, ElementsAre("outer lane", "inner lane", "overlaps lane 2", "later lane"));
}

TEST(OperationTrace, HasLaterOperationsOnTheCommonClock) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    world->barrier().wait();
    const auto begin = monotonic_ns();
    at::Tensor ones = at::ones({100});
    world->all_reduce(ones, Reduction::kSum).wait();
    const auto end = monotonic_ns();
    const auto events = trace_operations(*world, begin);
    ASSERT_EQ(events.size(), 1u) << "without the operations that ran before it";
    EXPECT_EQ(events[0].name, "all_reduce");
    EXPECT_EQ(events[0].lane, kOperationsLane);
    // The recorder's ticks are converted with a rounded factor.
    constexpr std::int64_t kSlack = 100'000;
    EXPECT_GE(events[0].begin_ns, begin - kSlack);
    EXPECT_LE(events[0].end_ns, end + kSlack);
    EXPECT_GE(events[0].end_ns, events[0].begin_ns);
    EXPECT_THAT(events[0].details, Contains(std::pair<std::string, std::string>("group", "world")));
  });
}

TEST(OperatorTrace, HasTheOperatorsOfThisThreadWhileItLives) {
  const at::Tensor ones = at::ones({10});
  std::optional<OperatorTrace> trace(std::in_place);
  const auto begin = monotonic_ns();
  const at::Tensor sum = ones + ones;
  const auto end = monotonic_ns();
  const auto events = trace->take();
  EXPECT_THAT(events, Contains(Field(&TraceEvent::name, "aten::add")));
  for (const auto& event : events) {
    EXPECT_LE(begin, event.begin_ns);
    EXPECT_LE(event.begin_ns, event.end_ns);
    EXPECT_LE(event.end_ns, end);
  }
  EXPECT_THAT(trace->take(), IsEmpty());
  EXPECT_THROW(OperatorTrace(), std::invalid_argument);
  trace.reset();
  OperatorTrace another;
  EXPECT_THAT(another.take(), IsEmpty());
}

}  // namespace
}  // namespace phalanx
