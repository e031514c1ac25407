#include "engine/schedule/schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

struct Root {
  Schedules::Choice schedule{"constant"};
  template <class V>
  void visit(V& v) {
    v("schedule", schedule, "under test");
  }
};

std::unique_ptr<Schedule> make(const std::string& schedule) {
  Root root;
  config::load_text(root, "schedule: " + schedule, "test.yaml");
  return root.schedule.make();
}

TEST(Schedule, ConstantIsOneAllAlong) {
  const auto constant = make("constant");
  for (const std::int64_t step : {0, 1, 999}) EXPECT_EQ(constant->factor(step, 1000), 1);
}

TEST(Schedule, CosineFallsFromOneToZero) {
  const auto cosine = make("cosine");
  EXPECT_EQ(cosine->factor(0, 100), 1);
  EXPECT_NEAR(cosine->factor(25, 100), 0.853553, 1e-6);
  EXPECT_NEAR(cosine->factor(50, 100), 0.5, 1e-12);
  EXPECT_NEAR(cosine->factor(75, 100), 0.146447, 1e-6);
  EXPECT_NEAR(cosine->factor(100, 100), 0, 1e-12);
}

TEST(Schedule, CosineNeverRisesAfterItsWarmUp) {
  const auto cosine = make("{name: cosine, warmup_steps: 10, final_factor: 0.1}");
  for (std::int64_t step = 10; step < 100; ++step) {
    EXPECT_GE(cosine->factor(step, 100), cosine->factor(step + 1, 100)) << "at step " << step;
  }
}

TEST(Schedule, CosineWarmsUpInEqualStepsWithoutOneThatLearnsNothing) {
  const auto cosine = make("{name: cosine, warmup_steps: 4}");
  EXPECT_EQ(cosine->factor(0, 100), 0.25);
  EXPECT_EQ(cosine->factor(1, 100), 0.5);
  EXPECT_EQ(cosine->factor(3, 100), 1);
  EXPECT_EQ(cosine->factor(4, 100), 1) << "the fall begins at the top";
}

TEST(Schedule, CosineEndsAtItsFinalFactor) {
  const auto cosine = make("{name: cosine, warmup_steps: 4, final_factor: 0.2}");
  EXPECT_NEAR(cosine->factor(54, 104), 0.6, 1e-12) << "half way";
  EXPECT_NEAR(cosine->factor(104, 104), 0.2, 1e-12);
  EXPECT_NEAR(cosine->factor(999, 104), 0.2, 1e-12) << "and stays there";
}

TEST(Schedule, CosineOfARunShorterThanItsWarmUpOnlyRises) {
  const auto cosine = make("{name: cosine, warmup_steps: 10}");
  EXPECT_EQ(cosine->factor(0, 3), 0.1);
  EXPECT_EQ(cosine->factor(2, 3), 0.3);
  EXPECT_EQ(cosine->factor(10, 10), 1);
}

TEST(Schedule, RefusesFactorsAboveOne) { EXPECT_THROW(make("{name: cosine, final_factor: 1.5}"), ConfigError); }

}  // namespace
}  // namespace phalanx
