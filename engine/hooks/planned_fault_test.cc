// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/planned_fault.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <stdlib.h>

#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <stdexcept>
#include <thread>

#include "engine/testing/run.h"
#include "framework/base/error.h"
#include "framework/base/wall_clock.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::new_path;
using testing::run_ranks;

using Clock = std::chrono::steady_clock;

PlannedFault fault_of(const std::string& kind) {
  return {.kind = kind, .rank = 0, .step = 3, .event = Event::kBackward, .note = new_path()};
}

// Calls the hook of a fault for the steps 1 to `steps`, on a single rank. Throws what the hook throws.
void take_steps(const PlannedFault& fault, std::int64_t steps) {
  std::exception_ptr thrown;
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    auto planned = planned_hook(fault, world);
    ASSERT_TRUE(planned);
    State state;
    try {
      for (; state.step < steps; ++state.step) planned->hook(state);
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
}

double seconds_of(const std::function<void()>& task) {
  const auto start = Clock::now();
  task();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(PlannedFault, IsReadFromTheEnvironmentAsItWasWritten) {
  const PlannedFault fault{.kind = "slow",
                           .rank = 1,
                           .step = 7,
                           .event = Event::kBackward,
                           .seconds = 0.5,
                           .times = 2,
                           .note = "/tmp/note",
                           .newcomer = "waits",
                           .awaits_newcomers = 40};
  ::setenv(kPlannedFault, to_text(fault).c_str(), 1);
  const auto read = planned_fault();
  ::unsetenv(kPlannedFault);
  ASSERT_TRUE(read);
  EXPECT_EQ(to_text(*read), to_text(fault));
  EXPECT_FALSE(planned_fault());
}

TEST(PlannedFault, RefusesAnUnknownKind) {
  ::setenv(kPlannedFault, R"({"kind": "flood", "rank": 0, "step": 1, "note": "x"})", 1);
  try {
    (void)planned_fault();
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"flood\" is not one of bad_alloc"));
  }
  ::unsetenv(kPlannedFault);
}

TEST(PlannedFault, RefusesAnUnknownPointOfANewcomer) {
  ::setenv(kPlannedFault, R"({"kind": "kill", "rank": 0, "step": 1, "note": "x", "newcomer": "leaves"})", 1);
  try {
    (void)planned_fault();
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("\"leaves\" is not one of loads, waits, trains"));
  }
  ::unsetenv(kPlannedFault);
}

TEST(PlannedFault, KillsOneNewcomerAtItsPoint) {
  auto fault = fault_of("kill");
  fault.newcomer = "waits";
  end_newcomer(fault, "loads");
  EXPECT_EXIT(end_newcomer(fault, "waits"), ::testing::KilledBySignal(SIGKILL), "");
  end_newcomer(fault, "waits");  // returns, as the note exists
}

TEST(PlannedFault, WaitsForNewcomersFromItsStepOn) {
  auto fault = fault_of("kill");
  int asked = 0;
  const auto present = [&] { return ++asked == 3; };
  await_newcomers(fault, {.step = 9}, present);
  fault.awaits_newcomers = 9;
  await_newcomers(fault, {.step = 8}, present);
  EXPECT_EQ(asked, 0);
  await_newcomers(fault, {.step = 9}, present);
  EXPECT_EQ(asked, 3);
}

TEST(PlannedFault, HappensAtItsStepAndLeavesANote) {
  const auto fault = fault_of("exception_in_hook");
  take_steps(fault, 2);
  EXPECT_FALSE(std::filesystem::exists(fault.note));
  EXPECT_THROW(take_steps(fault, 3), std::runtime_error);
  EXPECT_TRUE(std::filesystem::exists(fault.note));
}

TEST(PlannedFault, DoesNotHappenAgainInARunThatResumes) {
  const auto fault = fault_of("exception_in_hook");
  std::ofstream(fault.note) << "it has happened";
  take_steps(fault, 5);
}

TEST(PlannedFault, ConcernsOneRank) {
  auto fault = fault_of("exception_in_hook");
  fault.rank = 1;
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) { EXPECT_FALSE(planned_hook(fault, world)); });
}

TEST(PlannedFault, IsMemoryThatIsRefused) { EXPECT_THROW(take_steps(fault_of("bad_alloc"), 3), std::bad_alloc); }

TEST(PlannedFault, MismatchIsSeenByAllRanks) {
  const auto fault = fault_of("mismatch");
  run_ranks("inproc", 2, [&](const CommunicatorPtr& world) {
    State state{.step = 2};
    const auto take_step = [&] {
      if (auto planned = planned_hook(fault, world)) planned->hook(state);
      world->all_reduce(at::ones({4}), Reduction::kSum).wait();
    };
    try {
      take_step();
      ADD_FAILURE() << "rank " << world->rank() << " has not noticed";
    } catch (const CommError& error) {
      EXPECT_EQ(error.kind(), CommError::Kind::kMismatch);
    }
  });
}

TEST(PlannedFault, SlowsDownTenSteps) {
  auto fault = fault_of("slow");
  fault.seconds = 0.01;
  EXPECT_GE(seconds_of([&] { take_steps(fault, 30); }), 0.1);
}

TEST(PlannedFault, LetsEachStepTakeTenTimesAsLong) {
  const auto fault = fault_of("tenth_speed");
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    auto planned = planned_hook(fault, world);
    ASSERT_TRUE(planned);
    State state;
    const auto step = [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      planned->hook(state);
      ++state.step;
    };
    for (int i = 0; i < 3; ++i) step();  // the fault begins in the third step, which it only measures
    for (int i = 0; i < 5; ++i) EXPECT_GE(seconds_of(step), 0.02);
  });
}

TEST(PlannedFault, ShiftsTheClockThatTheRankReads) {
  auto fault = fault_of("clock_jump");
  fault.seconds = -86400;
  const double before = wall_seconds();
  take_steps(fault, 3);
  EXPECT_NEAR(wall_seconds(), before - 86400, 60);
  shift_wall_clock(std::chrono::seconds(0));
}

TEST(PlannedFault, PauseLastsUntilItIsEnded) {
  auto fault = fault_of("pause");
  fault.seconds = 60;
  std::jthread other([&] {
    while (!std::filesystem::exists(fault.note)) std::this_thread::yield();
    std::ofstream(fault.note + ".go") << "";
  });
  EXPECT_LT(seconds_of([&] { take_steps(fault, 3); }), 30);
}

TEST(PlannedFault, SpoilsTheInputBeforeTheModelSeesIt) {
  const auto fault = fault_of("exception_in_model");
  run_ranks("inproc", 1, [&](const CommunicatorPtr& world) {
    auto planned = planned_hook(fault, world);
    ASSERT_TRUE(planned);
    EXPECT_EQ(planned->event, Event::kSample);
    State state{.step = 2, .batch = {.inputs = {at::ones({4, 2})}}};
    planned->hook(state);
    EXPECT_EQ(state.batch.inputs[0].scalar_type(), at::kComplexDouble);
  });
}

TEST(PlannedFault, FailsTheBatchOfItsNumberOnce) {
  const auto fault = fault_of("exception_in_loader");
  const auto splits = with_planned_fault(fault, 0, testing::tiny_config({}).dataset.make());
  const std::vector<std::int64_t> indices{0, 1};
  Batch batch;
  splits.train->gather(indices, 1, batch);
  splits.train->gather(indices, 1, batch);
  EXPECT_THROW(splits.train->gather(indices, 1, batch), DataError);
  EXPECT_NO_THROW(splits.train->gather(indices, 1, batch));
}

}  // namespace
}  // namespace phalanx
