// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/operations/flight_recorder.h"

#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "framework/comm/operations/place.h"

namespace phalanx {
namespace {

using State = FlightRecorder::State;
using Group = FlightRecorder::Group;

Call call_of(std::int64_t elements) { return {.elements = elements, .op = Op::kSend, .dtype = c10::kFloat}; }

void record(FlightRecorder& recorder, Group& group, int times) {
  for (int i = 0; i < times; ++i) recorder.launched(group, call_of(i));
}

TEST(FlightRecorder, KeepsWhatWasLaunched) {
  FlightRecorder recorder;
  EXPECT_TRUE(recorder.records().empty());
  const auto group = recorder.add_group("world/3");
  const Call call{.elements = std::int64_t{1} << 40,
                  .detail = ~std::uint64_t{0},
                  .peer = 5,
                  .tag = 7,
                  .op = Op::kReduce,
                  .dtype = c10::kBFloat16,
                  .reduction = Reduction::kBitXor};
  recorder.launched(*group, call);
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].group, "world/3");
  EXPECT_EQ(records[0].number, 1u);
  EXPECT_EQ(records[0].sequence, 1u);
  EXPECT_EQ(records[0].call, call);
  EXPECT_EQ(records[0].state, State::kLaunched);
}

TEST(FlightRecorder, FollowsAnOperationToItsEnd) {
  FlightRecorder recorder;
  const auto group = recorder.add_group("world");
  const auto good = recorder.launched(*group, call_of(1)), bad = recorder.launched(*group, call_of(2));
  recorder.started(good);
  EXPECT_EQ(recorder.records()[0].state, State::kRunning);
  EXPECT_EQ(recorder.records()[0].finished_ns, 0);
  recorder.finished(good, true);
  recorder.started(bad);
  recorder.finished(bad, false);
  const auto records = recorder.records();
  EXPECT_EQ(records[0].state, State::kDone);
  EXPECT_EQ(records[1].state, State::kFailed);
  for (const auto& each : records) {
    EXPECT_LE(0, each.launched_ns);
    EXPECT_LE(each.launched_ns, each.started_ns);
    EXPECT_LE(each.started_ns, each.finished_ns);
  }
}

TEST(FlightRecorder, AnOperationThatDidNotHaveToWaitRanFromItsLaunch) {
  FlightRecorder recorder;
  const auto group = recorder.add_group("world");
  recorder.finished(recorder.launched(*group, call_of(1)), true);
  const auto record = recorder.records().at(0);
  EXPECT_EQ(record.started_ns, record.launched_ns);
  EXPECT_LE(record.started_ns, record.finished_ns);
}

TEST(FlightRecorder, CountsOverAllGroupsAndInEach) {
  FlightRecorder recorder;
  const auto world = recorder.add_group("world"), half = recorder.add_group("world/0");
  EXPECT_EQ(recorder.launched(*world, call_of(0)).sequence, 1u);
  EXPECT_EQ(recorder.launched(*half, call_of(0)).sequence, 1u);
  EXPECT_EQ(recorder.launched(*half, call_of(0)).sequence, 2u);
  const auto last = recorder.launched(*world, call_of(0));
  EXPECT_EQ(last.sequence, 2u);
  EXPECT_EQ(last.number, 4u);
}

TEST(FlightRecorder, KeepsTheLatestInOrder) {
  constexpr int kMore = 100;
  FlightRecorder recorder;
  const auto group = recorder.add_group("world");
  record(recorder, *group, FlightRecorder::kEntries + kMore);
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), FlightRecorder::kEntries);
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].number, kMore + 1 + i);
    EXPECT_EQ(records[i].call.elements, static_cast<std::int64_t>(kMore + i));
  }
}

TEST(FlightRecorder, DoesNotConfuseTheEndsOfOldAndNewOperations) {
  FlightRecorder recorder;
  const auto group = recorder.add_group("world");
  const auto old = recorder.launched(*group, call_of(-1));
  record(recorder, *group, FlightRecorder::kEntries);
  recorder.started(old);
  recorder.finished(old, false);
  for (const auto& each : recorder.records()) EXPECT_EQ(each.state, State::kLaunched);
}

TEST(FlightRecorder, ForgetsGroupsThatNoEntryNames) {
  FlightRecorder recorder;
  auto gone = recorder.add_group("gone");
  recorder.launched(*gone, call_of(0));
  const std::weak_ptr<Group> watch = gone;
  gone.reset();
  const auto world = recorder.add_group("world");
  EXPECT_EQ(recorder.records().at(0).group, "gone") << "its entry is still there";
  record(recorder, *world, FlightRecorder::kEntries);
  recorder.add_group("another");
  EXPECT_TRUE(watch.expired());
}

TEST(FlightRecorder, GivesEveryOperationOfManyThreadsItsNumber) {
  constexpr int kThreads = 4, kEach = 500;
  static_assert(kThreads * kEach <= FlightRecorder::kEntries);
  FlightRecorder recorder;
  const auto group = recorder.add_group("world");
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) threads.emplace_back([&] { record(recorder, *group, kEach); });
  }
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), std::size_t{kThreads} * kEach);
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].number, i + 1);
    EXPECT_EQ(records[i].state, State::kLaunched);
  }
}

// Every field of a writer's record is derived from one number, so that a mixture of two records would show.
TEST(FlightRecorder, CanBeReadWhileItIsWritten) {
  FlightRecorder recorder;
  std::vector<std::jthread> writers;  // stop when they are destroyed
  for (int t = 1; t <= 2; ++t) {
    writers.emplace_back([&, t](std::stop_token stop) {
      const auto group = recorder.add_group(std::to_string(t));
      const Call call{.elements = t, .detail = static_cast<std::uint64_t>(t), .peer = t, .tag = t, .op = Op::kSend};
      while (!stop.stop_requested()) {
        const auto ticket = recorder.launched(*group, call);
        recorder.started(ticket);
        recorder.finished(ticket, true);
      }
    });
  }
  std::size_t seen = 0;
  while (seen < 20 * FlightRecorder::kEntries) {
    std::uint64_t last = 0;
    for (const auto& each : recorder.records()) {
      ++seen;
      ASSERT_LT(last, each.number);
      last = each.number;
      ASSERT_EQ(each.group, std::to_string(each.call.elements));
      ASSERT_EQ(each.call.detail, static_cast<std::uint64_t>(each.call.elements));
      ASSERT_EQ(each.call.peer, each.call.tag);
    }
  }
}

TEST(FlightRecorder, HasThePlaceThatIssuedAnOperation) {
  FlightRecorder recorder;
  const auto group = recorder.add_group("world");
  const Place here = Place::current();
  {
    const PlaceScope scope(here);
    recorder.launched(*group, {.op = Op::kBarrier});
  }
  recorder.launched(*group, {.op = Op::kBarrier});
  const auto records = recorder.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].place, std::string(here.file_name()) + ":" + std::to_string(here.line()));
  EXPECT_EQ(records[1].place, "") << "the scope has ended";
}

}  // namespace
}  // namespace phalanx
