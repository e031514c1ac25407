// SPDX-License-Identifier: Apache-2.0
#include "framework/observe/times/step_times.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "framework/observe/monotonic_clock.h"
#include "framework/observe/times/step_clock.h"
#include "framework/observe/times/step_times_json.h"
#include "framework/observe/times/time_table.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_ranks;
using ::testing::StartsWith;

// Two ranks with 3.9 and 5.9 ms of work. The first one waits for the other.
StepTimes uneven() {
  return {.steps = 10,
          .ranks = {{0.0005, 0.001, 0.002, 0.0021, 0.0004, 0.0001}, {0.0005, 0.002, 0.003, 0.0001, 0.0004, 0.0001}}};
}

TEST(StepClock, LapsAddUpByPhase) {
  StepClock clock;
  std::vector<Phase> phases;
  std::int64_t last_end = 0;
  double expected = 0;
  clock.skip();
  clock.listen([&](Phase phase, std::int64_t begin, std::int64_t end) {
    phases.push_back(phase);
    EXPECT_LE(begin, end);
    EXPECT_TRUE(last_end == 0 || begin == last_end) << "no time is lost between laps";
    last_end = end;
    expected += static_cast<double>(end - begin) * 1e-9;
  });
  clock.lap(Phase::kData);
  clock.lap(Phase::kForward);
  clock.lap(Phase::kData);
  clock.end_step();
  EXPECT_THAT(phases, ElementsAre(Phase::kData, Phase::kForward, Phase::kData));
  const auto& total = clock.total();
  EXPECT_EQ(total.steps, 1);
  EXPECT_NEAR(total.seconds[0] + total.seconds[1], expected, 1e-12);
  EXPECT_EQ((total - total).seconds[0], 0);
}

TEST(StepClock, SkippedTimeBelongsToNoPhase) {
  StepClock clock;
  clock.skip();
  clock.lap(Phase::kData);
  std::int64_t begin = 0;
  clock.listen([&](Phase, std::int64_t from, std::int64_t) { begin = from; });
  const auto before = clock.total().seconds;
  const auto skipped = monotonic_ns();
  while (monotonic_ns() == skipped) {
  }
  clock.skip();
  EXPECT_EQ(clock.total().seconds, before);
  clock.lap(Phase::kForward);
  EXPECT_GT(begin, skipped);
}

TEST(StepClock, LapsDuringAPauseAreIgnored) {
  StepClock clock;
  int laps = 0;
  clock.listen([&](Phase, std::int64_t, std::int64_t) { ++laps; });
  {
    const StepClock::Pause recording(clock);
    clock.lap(Phase::kUpdate);
  }
  EXPECT_EQ(laps, 0);
  EXPECT_EQ(clock.total().seconds[static_cast<int>(Phase::kUpdate)], 0);
  clock.lap(Phase::kUpdate);
  EXPECT_EQ(laps, 1);
}

TEST(StepTimes, CoverAllRanks) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    PhaseTimes mine{.seconds = {}, .steps = 10};
    mine.seconds[static_cast<std::size_t>(Phase::kForward)] = 10.0 * (world->rank() == 1 ? 5 : 2);
    const auto times = across_ranks(mine, *world);
    const auto forward = times.phase(Phase::kForward);
    EXPECT_DOUBLE_EQ(forward.mean, 3);
    EXPECT_EQ(forward.least, 2);
    EXPECT_EQ(forward.least_rank, 0);
    EXPECT_EQ(forward.most, 5);
    EXPECT_EQ(forward.most_rank, 1);
    EXPECT_EQ(times.straggler(), "rank 1 is the straggler: its own work takes 150 % longer than that of rank 0");
  });
}

TEST(StepTimes, ARankThatWaitsForOthersIsNoStraggler) {
  EXPECT_EQ(uneven().own_work().most_rank, 1);
  EXPECT_EQ(uneven().straggler(), "rank 1 is the straggler: its own work takes 51 % longer than that of rank 0");
  auto even = uneven();
  even.ranks[1] = even.ranks[0];
  EXPECT_THAT(even.straggler(), HasSubstr("the ranks are balanced"));
  EXPECT_THAT((StepTimes{.steps = 1, .ranks = {{}}}).straggler(), HasSubstr("there is only one rank"));
}

TEST(StepTimes, ConvertToJson) {
  const auto json = spreads_to_json(uneven());
  EXPECT_EQ(json.at("steps"), 10);
  EXPECT_DOUBLE_EQ(json.at("phases").at("forward").at("mean_ms").get<double>(), 1.5);
  EXPECT_EQ(json.at("phases").at("communication").at("most_rank"), 0);
  EXPECT_DOUBLE_EQ(json.at("own_work").at("most_ms").get<double>(), 5.9);
  EXPECT_DOUBLE_EQ(means_to_json(uneven()).at("backward").get<double>(), 2.5);
}

TEST(TimeTable, ShowsPhasesRanksAndTheStraggler) {
  const std::string expected =
      "Time of a step         mean   share       least               most\n"
      "  waiting for data     500 us    8 %      500 us rank 0       500 us rank 0\n"
      "  forward             1.50 ms   25 %     1.00 ms rank 0      2.00 ms rank 1\n"
      "  backward            2.50 ms   41 %     2.00 ms rank 0      3.00 ms rank 1\n"
      "  communication       1.10 ms   18 %      100 us rank 1      2.10 ms rank 0\n"
      "  update               400 us    7 %      400 us rank 0       400 us rank 0\n"
      "  hooks                100 us    2 %      100 us rank 0       100 us rank 0\n"
      "  total               6.10 ms  100 %     6.10 ms rank 0      6.10 ms rank 0\n"
      "Rank 1 is the straggler: its own work takes 51 % longer than that of rank 0\n";
  EXPECT_EQ(to_time_table(uneven()), expected);
}

TEST(TimeTable, FitsIntoANarrowTerminal) {
  const std::string narrow =
      "Time of a step        mean share    least        most\n"
      "  waiting for data   500 us   8 %   500 us r0    500 us r0\n";
  EXPECT_THAT(to_time_table(uneven(), 60), StartsWith(narrow));
  auto many = uneven();
  many.ranks.resize(128, many.ranks[0]);
  for (const int columns : {80, 75, 60, 58, 57, 40}) {
    std::istringstream lines(to_time_table(many, columns));
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), columns) << line;
  }
  EXPECT_THAT(to_time_table(uneven(), 40), HasSubstr("straggler: its own work\ntakes 51 %"));
  EXPECT_EQ(to_time_table(uneven(), 80), to_time_table(uneven()));
}

TEST(TimeTable, NamesNoRankIfThereIsOnlyOne) {
  const auto table = to_time_table({.steps = 1, .ranks = {uneven().ranks[0]}});
  EXPECT_THAT(table, HasSubstr("forward"));
  EXPECT_THAT(table, Not(HasSubstr("rank")));
}

}  // namespace
}  // namespace phalanx
