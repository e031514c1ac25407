// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/expected_run.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ExpectConfig expected(const std::string& yaml) {
  auto expect = config::load_as<ExpectConfig>("expect", yaml, "test.yaml");
  for (auto& reach : expect.reach) {  // as with_defaults_of() does
    if (reach.best == "auto") reach.best = reach.metric == "loss" ? "lowest" : "highest";
  }
  return expect;
}

/// A run that ended with these metrics of its splits.
struct Ended {
  Metrics train{}, validation{}, test{};
  std::vector<MetricsRecord> measurements{};
  double samples_per_second = 0;
  std::vector<std::int64_t> peak_memory{};
  std::optional<TrafficComparison> traffic{};

  std::vector<ExpectationResult> results(const ExpectConfig& expect) const {
    Milestones milestones(expect);
    for (const auto& record : measurements) milestones.add(record);
    return compare(expect, {.train = train,
                            .validation = validation,
                            .test = test,
                            .milestones = milestones,
                            .epochs = 2,
                            .samples_per_second = samples_per_second,
                            .peak_memory = peak_memory,
                            .traffic = traffic});
  }

  /// Returns each expectation as "key: wanted, got", with an exclamation mark if it was not met.
  std::vector<std::string> lines(const std::string& yaml) const {
    std::vector<std::string> lines;
    for (const auto& [key, wanted, got, value, met] : results(expected(yaml))) {
      lines.push_back((met ? "" : "!") + key + ": " + wanted + ", " + got);
    }
    return lines;
  }
};

Ended tested(const std::string& metric, double value) { return {.test = {{metric, value}}}; }

TEST(ExpectedRun, ValuesEqualToABoundMeetIt) {
  const std::string bounds = "{test: {accuracy: {min: 0.5, max: 0.75}}}";
  EXPECT_THAT(tested("accuracy", 0.5).lines(bounds),
              ElementsAre("test.accuracy.min: >= 0.5, 0.5", "test.accuracy.max: <= 0.75, 0.5"));
  EXPECT_THAT(tested("accuracy", 0.4999).lines(bounds),
              ElementsAre("!test.accuracy.min: >= 0.5, 0.4999", "test.accuracy.max: <= 0.75, 0.4999"));
  EXPECT_THAT(tested("accuracy", 0.7501).lines(bounds),
              ElementsAre("test.accuracy.min: >= 0.5, 0.7501", "!test.accuracy.max: <= 0.75, 0.7501"));
}

TEST(ExpectedRun, NonFiniteValuesMeetNoBound) {
  EXPECT_THAT(tested("loss", NAN).lines("{test: {loss: {min: 1, max: 2}}}"),
              ElementsAre("!test.loss.min: >= 1, nan", "!test.loss.max: <= 2, nan"));
}

TEST(ExpectedRun, EachSplitHasItsOwnMetrics) {
  const Ended run{.train = {{"loss", 1}}, .validation = {{"loss", 2}}, .test = {{"loss", 3}}};
  EXPECT_THAT(run.lines("{train: {loss: {max: 2}}, validation: {loss: {max: 2}}, test: {loss: {max: 2}}}"),
              ElementsAre("train.loss.max: <= 2, 1", "validation.loss.max: <= 2, 2", "!test.loss.max: <= 2, 3"));
}

TEST(ExpectedRun, HasTheValueForOtherPrograms) {
  const auto results = tested("loss", 0.5).results(expected("{test: {loss: {max: 1}, auc: {min: 0.1}}}"));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].key, "test.auc.min");
  EXPECT_EQ(results[0].value, std::nullopt);
  EXPECT_EQ(results[0].got, "no measurement");
  EXPECT_EQ(results[1].value, 0.5);
}

TEST(ExpectedRun, ComparesWithTheLastMeasurementOfAnEpoch) {
  const Ended run{.test = {{"loss", 9}},
                  .measurements = {{.epoch = 0, .split = "test", .metrics = {{"loss", 3}}},
                                   {.epoch = 0, .split = "train", .metrics = {{"loss", 4}}},
                                   {.epoch = 0, .split = "test", .metrics = {{"loss", 2}}},
                                   {.epoch = 1, .split = "test", .metrics = {{"loss", 1}}}}};
  EXPECT_THAT(
      run.lines("{epochs: {1: {test: {loss: {max: 2}}, train: {loss: {max: 2}}}, 3: {test: {loss: {max: 2}}}}}"),
      ElementsAre("!epochs.1.train.loss.max: <= 2, 4", "epochs.1.test.loss.max: <= 2, 2",
                  "!epochs.3.test.loss.max: <= 2, no measurement in this epoch; the run ended in epoch 2"));
}

TEST(ExpectedRun, ComparesTheTimeToAValue) {
  const Ended run{.measurements = {{.epoch = 0, .split = "test", .metrics = {{"accuracy", 0.7}}, .seconds = 10},
                                   {.epoch = 1, .split = "test", .metrics = {{"accuracy", 0.9}}, .seconds = 20},
                                   {.epoch = 2, .split = "test", .metrics = {{"accuracy", 0.8}}, .seconds = 30}}};
  EXPECT_THAT(run.lines("{reach: [{metric: accuracy, value: 0.9, seconds: 20, epochs: 1}]}"),
              ElementsAre("reach[0].seconds: test.accuracy >= 0.9 within 20 seconds, reached within 20 seconds",
                          "!reach[0].epochs: test.accuracy >= 0.9 within 1 epochs, reached within 2 epochs"));
  EXPECT_THAT(run.lines("{reach: [{metric: accuracy, value: 0.95, seconds: 99}]}"),
              ElementsAre("!reach[0].seconds: test.accuracy >= 0.95 within 99 seconds, not reached, the best was 0.9"));
  EXPECT_THAT(run.lines("{reach: [{split: train, metric: accuracy, value: 0.5, seconds: 99}]}"),
              ElementsAre("!reach[0].seconds: train.accuracy >= 0.5 within 99 seconds, no measurement"));
}

TEST(ExpectedRun, ComparesThroughput) {
  EXPECT_THAT(Ended{.samples_per_second = 953.2}.lines("{throughput: {min: 1000}}"),
              ElementsAre("!throughput.min: >= 1000 samples/s, 953.2 samples/s"));
  EXPECT_THAT(Ended{.samples_per_second = 1000}.lines("{throughput: {min: 1000, of_median: 0.95}}"),
              ElementsAre("throughput.min: >= 1000 samples/s, 1000 samples/s"));
}

TEST(ExpectedRun, ComparesTheMemoryOfTheRankThatUsedMost) {
  const Ended run{.peak_memory = {1000, 2049, 2000}};
  EXPECT_THAT(run.lines("{memory: {max: 2KB}}"),
              ElementsAre("!memory.max: <= 2 KB (2048 bytes), 2 KB (2049 bytes) on rank 1"));
  EXPECT_THAT(run.lines("{memory: {max: 2049}}"),
              ElementsAre("memory.max: <= 2 KB (2049 bytes), 2 KB (2049 bytes) on rank 1"));
  EXPECT_THAT(Ended{.peak_memory = {0}}.lines("{memory: {max: 2KB}}"),
              ElementsAre("!memory.max: <= 2 KB (2048 bytes), no measurement"));
}

TEST(ExpectedRun, ComparesTrafficWithItsPlan) {
  Ended run{.traffic = TrafficComparison{.planned = {.bytes = 1000, .collectives = 4},
                                         .seen = {.bytes = 1100, .collectives = 4},
                                         .differences = "all_reduce along data: more"}};
  EXPECT_THAT(
      run.lines("{traffic: {tolerance: 0}}"),
      ElementsAre("!traffic.bytes_per_step: 1000 as planned, 1100", "traffic.collectives_per_step: 4 as planned, 4",
                  "!traffic.operations: as planned, all_reduce along data: more"));
  EXPECT_THAT(run.lines("{traffic: {tolerance: 0.1}}"),
              ElementsAre("traffic.bytes_per_step: 1000 as planned, with a tolerance of 0.1, 1100",
                          "traffic.collectives_per_step: 4 as planned, with a tolerance of 0.1, 4"));
  run.traffic.reset();
  EXPECT_THAT(run.lines("{traffic: {tolerance: 0.5}}"), ::testing::Each(::testing::StartsWith("!traffic.")));
}

TEST(ExpectedRun, LeavesWhatTakesOtherRuns) {
  EXPECT_THAT(
      Ended{}.lines("{throughput: {of_median: 0.9}, same_as: {config: a.yaml}, resume_at: 0.5, scaling: {min: 1}, "
                    "faults: {injected: 1}}"),
      IsEmpty());
}

TEST(ExpectedRun, ListsEverythingThatWasNotMet) {
  const Ended run{.test = {{"accuracy", 0.95}, {"loss", 0.1}}, .samples_per_second = 900};
  EXPECT_EQ(
      list_unmet(run.results(expected("{test: {accuracy: {min: 0.97}, loss: {max: 0.2}}, throughput: {min: 1000}}"))),
      "the run has completed, but not as expected: 2 of 3 expectations are not met\n"
      "expect.test.accuracy.min: wanted >= 0.97, got 0.95\n"
      "expect.throughput.min: wanted >= 1000 samples/s, got 900 samples/s");
  EXPECT_EQ(list_unmet(run.results(expected("{test: {loss: {max: 0.2}}}"))), "");
}

}  // namespace
}  // namespace phalanx
