// SPDX-License-Identifier: Apache-2.0
// Compares the factor after each of several tests with torch.optim.lr_scheduler.ReduceLROnPlateau 2.13.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/testing/schedule.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_schedule;
using ::testing::ThrowsMessage;

const std::vector<double> kLosses = {1.0, 0.9, 0.89995, 0.95, 0.9, 0.9, 0.9, 0.9, NAN, 0.5, 0.5, 0.5, 0.6, 0.5, 0.4};

std::vector<double> factors(Schedule& schedule, const std::vector<double>& values, const char* metric = "loss") {
  std::vector<double> factors;
  for (const double value : values) {
    schedule.observe(0, {{"other", 0.0}, {metric, value}});
    factors.push_back(schedule.factor(0, 100));
  }
  return factors;
}

TEST(Plateau, DropsAfterItsPatienceCoolsDownAndStopsAtLeastFactor) {
  const auto plateau = make_schedule("{name: plateau, gamma: 0.5, patience: 2, cooldown: 1, least_factor: 0.2}");
  EXPECT_EQ(plateau->factor(0, 100), 1);
  EXPECT_THAT(factors(*plateau, kLosses),
              ElementsAre(1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2));
}

TEST(Plateau, AnAbsoluteThresholdIsInTheUnitOfTheMetric) {
  const auto plateau =
      make_schedule("{name: plateau, gamma: 0.5, patience: 0, threshold: 0.05, threshold_is: absolute}");
  EXPECT_THAT(factors(*plateau, kLosses),
              ElementsAre(1, 1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.0078125, 0.00390625,
                          0.001953125, 0.0009765625, 0.00048828125, 0.00048828125));
}

TEST(Plateau, TheHighestMayBeTheBest) {
  const auto plateau = make_schedule("{name: plateau, metric: accuracy, best: highest, patience: 1, threshold: 0.001}");
  EXPECT_THAT(plateau->monitored_metrics(), ElementsAre("accuracy"));
  EXPECT_THAT(factors(*plateau, {0.1, 0.5, 0.5001, 0.50004, 0.7, 0.7, 0.6, 0.71}, "accuracy"),
              ElementsAre(1, 1, 1, 0.1, 0.1, 0.1, ::testing::DoubleEq(0.01), ::testing::DoubleEq(0.01)));
}

TEST(Plateau, ContinuesFromItsState) {
  const std::string yaml = "{name: plateau, gamma: 0.5, patience: 2, cooldown: 1, least_factor: 0.2}";
  const auto whole = make_schedule(yaml);
  const auto expected = factors(*whole, kLosses);
  for (std::size_t cut = 0; cut < kLosses.size(); ++cut) {
    const auto before = make_schedule(yaml), after = make_schedule(yaml);
    const auto middle = kLosses.begin() + static_cast<std::ptrdiff_t>(cut);
    factors(*before, {kLosses.begin(), middle});
    after->load(before->state());
    const std::vector<double> rest(expected.begin() + static_cast<std::ptrdiff_t>(cut), expected.end());
    EXPECT_EQ(factors(*after, {middle, kLosses.end()}), rest) << "cut after " << cut << " tests";
  }
}

TEST(Plateau, RefusesAMetricThatIsNotMeasured) {
  const auto plateau = make_schedule("{name: plateau, metric: f1}");
  EXPECT_THAT([&] { factors(*plateau, {1.0}); }, ThrowsMessage<ConfigError>(HasSubstr("f1")));
}

TEST(Plateau, RefusesAGammaOf1) { EXPECT_THROW(make_schedule("{name: plateau, gamma: 1}"), ConfigError); }

TEST(Plateau, RefusesTheStateOfAnotherSchedule) {
  EXPECT_THAT([] { make_schedule("plateau")->load({1, 2}); }, ThrowsMessage<DataError>(HasSubstr("another schedule")));
  EXPECT_THAT([] { make_schedule("cosine")->load({1}); }, ThrowsMessage<DataError>(HasSubstr("another schedule")));
}

}  // namespace
}  // namespace phalanx
