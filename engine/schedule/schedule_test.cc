// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/testing/schedule.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using testing::make_schedule;

TEST(Schedule, ConstantIsAlwaysOne) {
  const auto constant = make_schedule("constant");
  for (const std::int64_t step : {0, 1, 999}) EXPECT_EQ(constant->factor(step, 1000), 1);
}

TEST(Schedule, CosineFallsFromOneToZero) {
  const auto cosine = make_schedule("cosine");
  EXPECT_EQ(cosine->factor(0, 100), 1);
  EXPECT_NEAR(cosine->factor(25, 100), 0.853553, 1e-6);
  EXPECT_NEAR(cosine->factor(50, 100), 0.5, 1e-12);
  EXPECT_NEAR(cosine->factor(75, 100), 0.146447, 1e-6);
  EXPECT_NEAR(cosine->factor(100, 100), 0, 1e-12);
}

TEST(Schedule, CosineNeverRisesAfterItsWarmUp) {
  const auto cosine = make_schedule("{name: cosine, warmup_steps: 10, final_factor: 0.1}");
  for (std::int64_t step = 10; step < 100; ++step) {
    EXPECT_GE(cosine->factor(step, 100), cosine->factor(step + 1, 100)) << "at step " << step;
  }
}

TEST(Schedule, CosineWarmsUpInEqualStepsStartingAboveZero) {
  const auto cosine = make_schedule("{name: cosine, warmup_steps: 4}");
  EXPECT_EQ(cosine->factor(0, 100), 0.25);
  EXPECT_EQ(cosine->factor(1, 100), 0.5);
  EXPECT_EQ(cosine->factor(3, 100), 1);
  EXPECT_EQ(cosine->factor(4, 100), 1) << "the fall begins at the top";
}

TEST(Schedule, CosineEndsAtItsFinalFactor) {
  const auto cosine = make_schedule("{name: cosine, warmup_steps: 4, final_factor: 0.2}");
  EXPECT_NEAR(cosine->factor(54, 104), 0.6, 1e-12) << "half way";
  EXPECT_NEAR(cosine->factor(104, 104), 0.2, 1e-12);
  EXPECT_NEAR(cosine->factor(999, 104), 0.2, 1e-12) << "and stays there";
}

TEST(Schedule, CosineOfARunShorterThanItsWarmUpOnlyRises) {
  const auto cosine = make_schedule("{name: cosine, warmup_steps: 10}");
  EXPECT_EQ(cosine->factor(0, 3), 0.1);
  EXPECT_EQ(cosine->factor(2, 3), 0.3);
  EXPECT_EQ(cosine->factor(10, 10), 1);
}

TEST(Schedule, WsdRisesStaysAndFalls) {
  const auto wsd = make_schedule("{name: wsd, warmup_steps: 10, final_factor: 0.1}");
  EXPECT_DOUBLE_EQ(wsd->factor(0, 100), 0.1);
  EXPECT_DOUBLE_EQ(wsd->factor(9, 100), 1);
  for (const std::int64_t step : {10, 50, 79, 80}) EXPECT_EQ(wsd->factor(step, 100), 1) << "at step " << step;
  EXPECT_DOUBLE_EQ(wsd->factor(81, 100), 0.955);
  EXPECT_DOUBLE_EQ(wsd->factor(90, 100), 0.55);
  EXPECT_DOUBLE_EQ(wsd->factor(100, 100), 0.1);
  EXPECT_DOUBLE_EQ(wsd->factor(999, 100), 0.1) << "and stays there";
}

TEST(Schedule, WsdFallsInThreeShapes) {
  const auto at = [](const std::string& shape, std::int64_t step) {
    return make_schedule("{name: wsd, shape: " + shape + "}")->factor(step, 100);
  };
  EXPECT_NEAR(at("linear", 85), 0.75, 1e-12);
  EXPECT_NEAR(at("cosine", 85), 0.853553390593, 1e-12);  // (1 + cos(pi / 4)) / 2
  EXPECT_NEAR(at("1-sqrt", 85), 0.5, 1e-12);
  for (const char* shape : {"linear", "cosine", "1-sqrt"}) {
    EXPECT_EQ(at(shape, 80), 1) << shape;
    EXPECT_NEAR(at(shape, 100), 0, 1e-12) << shape;
  }
}

TEST(Schedule, WsdOfAShortRunGivesTheWarmUpItsSteps) {
  const auto wsd = make_schedule("{name: wsd, warmup_steps: 8, decay: 1}");
  EXPECT_EQ(wsd->factor(7, 10), 1);
  EXPECT_EQ(wsd->factor(8, 10), 1);
  EXPECT_EQ(wsd->factor(9, 10), 0.5);
  EXPECT_EQ(make_schedule("{name: wsd, decay: 0}")->factor(9, 10), 1);
}

TEST(Schedule, OneCycleOfOneStepTakesTheLearningRate) { EXPECT_EQ(make_schedule("one_cycle")->factor(0, 1), 1); }

class Refused : public ::testing::TestWithParam<const char*> {};

TEST_P(Refused, ThrowsAConfigError) { EXPECT_THROW(make_schedule(GetParam()), ConfigError); }

INSTANTIATE_TEST_SUITE_P(Configs, Refused,
                         ::testing::Values("{name: cosine, final_factor: 1.5}", "{name: cosine, warmup_steps: -1}",
                                           "{name: step, every: 0}", "{name: step, gamma: 0}", "multi_step",
                                           "{name: multi_step, at: [0]}", "{name: multi_step, at: [20, 10]}",
                                           "{name: exponential, gamma: -1}", "{name: linear, from: 2}",
                                           "{name: linear, over: -1}", "{name: polynomial, power: 0}",
                                           "{name: one_cycle, rise: 1.1}", "{name: one_cycle, divide_by: 0.5}",
                                           "{name: one_cycle, shape: round}", "{name: wsd, decay: 2}",
                                           "{name: wsd, shape: sqrt}", "{name: warmup, over: 0}",
                                           "{name: plateau, patience: -1}", "{name: plateau, best: median}"));

}  // namespace
}  // namespace phalanx
