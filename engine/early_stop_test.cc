// SPDX-License-Identifier: Apache-2.0
#include "engine/early_stop.h"

#include <gmock/gmock.h>

#include <limits>

#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;

// Returns the step after which a run with one of these tests after every tenth step stops, or -1 if it does not.
std::int64_t stops_at(EarlyStop& stop, const std::vector<double>& metrics) {
  std::int64_t step = 0;
  for (const double metric : metrics) {
    stop.observe(step += 10, {{"loss", 99}, {"score", metric}});
    if (stop.stopped()) return step;
  }
  return -1;
}

std::int64_t stops_at(const EarlyStopConfig& config, const std::vector<double>& metrics) {
  EarlyStop stop(config);
  return stops_at(stop, metrics);
}

TEST(EarlyStop, StopsAfterPatienceIsExceeded) {
  const std::vector<double> metrics{0.5, 0.6, 0.6, 0.59, 0.6, 0.7};
  EXPECT_EQ(stops_at({.metric = "score", .patience = 2}, metrics), 50);
  EXPECT_EQ(stops_at({.metric = "score", .patience = 1}, metrics), 40);
  EXPECT_EQ(stops_at({.metric = "score", .patience = 0}, metrics), 30);
  EXPECT_EQ(stops_at({.metric = "score", .patience = 3}, metrics), -1) << "the last one is better";
}

TEST(EarlyStop, TheBestMayBeTheLowest) {
  EXPECT_EQ(stops_at({.metric = "score", .best = "lowest", .patience = 0}, {3, 2, 1, 1.5}), 40);
  EXPECT_EQ(stops_at({.metric = "score", .best = "highest", .patience = 0}, {3, 2, 1, 1.5}), 20);
}

TEST(EarlyStop, ChangesBelowMinDeltaAreNoImprovement) {
  EXPECT_EQ(stops_at({.metric = "score", .patience = 1, .min_delta = 0.5}, {1, 1.4, 1.5, 9}), 30);
  EXPECT_EQ(stops_at({.metric = "score", .patience = 1, .min_delta = 0.5}, {1, 1.4, 1.6, 2.2}), -1);
}

TEST(EarlyStop, NanIsNeverAnImprovement) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EarlyStop stop({.metric = "score", .patience = 1});
  EXPECT_EQ(stops_at(stop, {nan, nan, 1}), 20);
  EXPECT_EQ(stop.reason(), "score was not a number in 2 tests");
}

TEST(EarlyStop, SaysWhyItStops) {
  EarlyStop stop({.metric = "score", .patience = 1});
  EXPECT_EQ(stop.reason(), "");
  stops_at(stop, {0.25, 0.75, 0.5, 0.5});
  EXPECT_EQ(stop.reason(), "score was 0.75 at step 20, and no better in 2 tests since");
}

TEST(EarlyStop, IsOffWithoutAMetric) {
  EXPECT_EQ(stops_at({.metric = "", .patience = 0}, {3, 2, 1}), -1);
  EXPECT_FALSE(EarlyStop(EarlyStopConfig{}).enabled());
}

TEST(EarlyStop, ContinuesFromItsState) {
  EarlyStop first({.metric = "score", .patience = 2}), second({.metric = "score", .patience = 2});
  stops_at(first, {5, 4, 4});
  second.load(first.state());
  second.observe(40, {{"score", 4.5}});
  EXPECT_TRUE(second.stopped());
  EXPECT_EQ(second.reason(), "score was 5 at step 10, and no better in 3 tests since");
}

TEST(EarlyStop, ContinuesIfThePatienceIsLongerNow) {
  EarlyStop first({.metric = "score", .patience = 0}), longer({.metric = "score", .patience = 1}),
      off(EarlyStopConfig{});
  stops_at(first, {5, 4});
  ASSERT_TRUE(first.stopped());
  longer.load(first.state());
  EXPECT_FALSE(longer.stopped());
  off.load(first.state());
  EXPECT_FALSE(off.stopped());
  EXPECT_THROW(off.load({1, 2}), DataError);
}

TEST(EarlyStop, RefusesAMetricThatNoMeterMeasures) {
  EXPECT_NO_THROW(EarlyStop({.metric = "score"}).check({{"score", 0}}));
  EXPECT_THAT([] { EarlyStop({.metric = "auc"}).check({{"score", 0}}); },
              ::testing::ThrowsMessage<ConfigError>(
                  HasSubstr("train.early_stop.metric is \"auc\", but no meter in evaluate.meters measures it")));
}

}  // namespace
}  // namespace phalanx
