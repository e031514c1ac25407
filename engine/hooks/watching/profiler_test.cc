// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/watching/profiler.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/hooks/watching/timed.h"
#include "engine/hooks/watching/watching.h"
#include "engine/run_length.h"
#include "engine/testing/fakes.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsSupersetOf;
using testing::run_ranks;
using ::testing::ThrowsMessage;

class WindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_.path());
    std::filesystem::create_directories(folder_.path());
  }

  // Trains for two epochs of five steps. The run seems to have `steps` of them until it begins.
  void train(const CommunicatorPtr& world, const ProfileConfig& profile, State begin = {.epochs = 2},
             std::int64_t steps = 10) const {
    WatchConfig config;
    config.profile = profile;
    testing::FakeLoader loader(5);
    testing::FakeStep step;
    testing::FakeStrategy strategy;
    Watching watching(config, world, folder_);
    TimedStep timed(step, watching.clock());
    TimedUpdate optimizer(std::make_unique<testing::FakeOptimizer>(), watching.clock());
    Engine engine(timed, optimizer, strategy);
    RunLength length{.steps = steps};
    engine.on(Event::kStart, HookPhase::kCheckpoint, [&](State&) { length.steps = 10; });
    watching.attach(engine, length);
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

TEST_F(WindowTest, KnowsTheLastStepOnceTheRunHasResumed) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    train(world, {.from = 9, .to = 9}, {.epoch = 1, .epochs = 2, .step = 7, .cursor = 2}, 8);
  });
  EXPECT_THAT(names_of(lanes(0)["steps"]), ElementsAre("step 9"));
}

TEST_F(WindowTest, RefusesAWindowAfterTheLastStep) {
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    EXPECT_THAT([&] { train(world, {.from = 11, .to = 12}); },
                ThrowsMessage<ConfigError>("watch.profile.from is 11, but the run has 10 steps"));
  });
}

}  // namespace
}  // namespace phalanx
