// SPDX-License-Identifier: Apache-2.0
// Tests the times of steps: clock, spread over ranks, table, and the trace of a window.
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "engine/testing/fakes.h"
#include "engine/watch/step_clock.h"
#include "engine/watch/step_times.h"
#include "engine/watch/step_times_json.h"
#include "engine/watch/time_table.h"
#include "engine/watch/timed.h"
#include "engine/watch/watching.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/observe/monotonic_clock.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using testing::run_ranks;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

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

TEST(Timed, StageWatchersCountAsHooksAndSumsWithinAnUpdateAsCommunication) {
  StepClock clock;
  std::vector<Phase> phases;
  clock.skip();
  clock.listen([&](Phase phase, std::int64_t, std::int64_t) { phases.push_back(phase); });
  testing::FakeStep fake;
  TimedStep(fake, clock).run({}, [](Stage, const Step::Result&) {});
  using enum Phase;
  EXPECT_THAT(phases, ElementsAre(kHooks, kForward, kHooks, kForward, kHooks, kBackward, kHooks, kBackward, kHooks));
  phases.clear();
  int summed = 0;
  at::Tensor sums = at::zeros({1}, at::kDouble);
  timed([&](at::Tensor&) { ++summed; }, clock)(sums);
  EXPECT_EQ(summed, 1);
  EXPECT_THAT(phases, ElementsAre(kUpdate, kCommunication));
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

class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_.path());
    std::filesystem::create_directories(folder_.path());
  }

  // Trains for two epochs of five steps.
  void train(const CommunicatorPtr& world, const ProfileConfig& profile, State begin = {.epochs = 2}) const {
    WatchConfig config;
    config.profile = profile;
    testing::FakeLoader loader(5);
    testing::FakeStep step;
    testing::FakeStrategy strategy;
    Watching watching(config, world, folder_);
    TimedStep timed(step, watching.clock());
    TimedUpdate optimizer(std::make_unique<testing::FakeOptimizer>(), watching.clock());
    Engine engine(timed, optimizer, strategy);
    watching.attach(engine, 10);
    engine.on(Event::kBackward, [&](State&) { world->barrier().wait(); });
    const auto parameters = testing::no_parameters();
    engine.train(parameters, loader, std::move(begin));
    EXPECT_EQ(watching.clock().total().steps, 10 - begin.step);
  }

  bool written() const { return std::filesystem::exists(folder_.trace()); }

  // Returns the complete events of a rank by lane.
  std::map<std::string, std::vector<nlohmann::json>> lanes(int rank) const {
    const auto trace = nlohmann::json::parse(read_file(folder_.trace()));
    std::map<int, std::string> names;
    std::map<std::string, std::vector<nlohmann::json>> lanes;
    for (const auto& event : trace.at("traceEvents")) {
      if (event.at("pid") != rank) continue;
      const int lane = event.at("tid");
      if (event.at("name") == "thread_name") names[lane] = event.at("args").at("name");
      if (event.at("ph") == "X") lanes[names.at(lane)].push_back(event);
    }
    return lanes;
  }

  static std::vector<std::string> names_of(const std::vector<nlohmann::json>& events) {
    std::vector<std::string> names;
    for (const auto& event : events) names.push_back(event.at("name"));
    return names;
  }

  const RunFolder folder_{::testing::TempDir() + "/window"};
};

TEST_F(WindowTest, HasTheStepsPhasesAndCollectivesOfAllRanks) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) { train(world, {.from = 4, .to = 6}); });
  for (const int rank : {0, 1}) {
    auto all = lanes(rank);
    EXPECT_THAT(names_of(all["steps"]), ElementsAre("step 4", "step 5", "step 6"));
    EXPECT_THAT(names_of(all["phases"]),
                IsSupersetOf({"data", "forward", "backward", "communication", "update", "hooks"}));
    const auto operations = names_of(all["communication"]);
    // The barrier of the step before may still be in progress when the window begins.
    EXPECT_THAT(std::ranges::count(operations, "barrier"), ::testing::AnyOf(3, 4));
    EXPECT_FALSE(all["operators"].empty());
    for (const auto& [lane, events] : all) {
      for (const auto& event : events) {
        EXPECT_GT(event.at("ts"), -1e6) << "on rank 0's clock, since the window began";
        EXPECT_LT(event.at("ts"), 60e6);
        EXPECT_GE(event.at("dur"), 0);
      }
    }
  }
}

TEST_F(WindowTest, OperatorsCanBeOmitted) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) { train(world, {.from = 1, .to = 2, .operators = false}); });
  EXPECT_THAT(names_of(lanes(0)["steps"]), ElementsAre("step 1", "step 2"));
  EXPECT_TRUE(lanes(0)["operators"].empty());
}

TEST_F(WindowTest, EndsWithTheRun) {
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) { train(world, {.from = 9, .to = 1000}); });
  EXPECT_THAT(names_of(lanes(1)["steps"]), ElementsAre("step 9", "step 10"));
}

TEST_F(WindowTest, ARunResumedWithinItIsTracedFromThere) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    train(world, {.from = 2, .to = 9}, {.epoch = 1, .epochs = 2, .step = 7, .cursor = 2});
  });
  EXPECT_THAT(names_of(lanes(0)["steps"]), ElementsAre("step 8", "step 9"));
}

TEST_F(WindowTest, ARunResumedAfterItWritesNoTrace) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    train(world, {.from = 2, .to = 4}, {.epoch = 1, .epochs = 2, .step = 7, .cursor = 2});
  });
  EXPECT_FALSE(written());
}

TEST_F(WindowTest, RefusesAWindowAfterTheLastStep) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    EXPECT_THAT([&] { train(world, {.from = 11, .to = 12}); },
                ThrowsMessage<ConfigError>("watch.profile.from is 11, but the run has 10 steps"));
  });
}

}  // namespace
}  // namespace phalanx
