// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/run_times.h"

#include <gtest/gtest.h>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

TEST(RunTimes, CountTheSamplesOfAWindowAndOfTheRun) {
  StepClock clock;
  RunTimes times(clock, RunTimes::Clock::now());
  times.start_training();
  EXPECT_EQ(times.seconds_to_first_step(), 0);
  times.count_step(32);
  times.begin_window();
  times.count_step(4);
  EXPECT_EQ(times.window_samples(), 4);
  EXPECT_EQ(times.progress().samples, 36);
  EXPECT_GT(times.seconds_to_first_step(), 0);
}

TEST(RunTimes, ContinueTheTimesOfTheResumedRun) {
  StepClock clock;
  RunTimes times(clock, RunTimes::Clock::now());
  times.start_training();
  times.load(
      {.window_samples = 8, .samples = 100, .training_seconds = 1000, .window_seconds = 10, .evaluation_seconds = 600});
  EXPECT_GE(times.since_training_started(), 1000);
  EXPECT_LE(times.window_samples_per_second(), 0.8);
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& world) { times.end_training(*world); });
  EXPECT_LE(times.samples_per_second(), 0.25) << "100 samples in 1000 s, of which 600 s were evaluations";
  EXPECT_GT(times.samples_per_second(), 0.1);
}

TEST(RunTimes, ExcludeEvaluationsDuringTraining) {
  StepClock clock;
  RunTimes times(clock, RunTimes::Clock::now());
  times.start_training();
  times.start_evaluation();
  const double seconds = times.end_evaluation();
  EXPECT_EQ(times.progress().evaluation_seconds, seconds);
  testing::run_ranks("inproc", 1, [&](const CommunicatorPtr& world) { times.end_training(*world); });
  times.start_evaluation();
  times.end_evaluation();
  EXPECT_EQ(times.progress().evaluation_seconds, seconds) << "an evaluation after the end is not part of training";
}

}  // namespace
}  // namespace phalanx
