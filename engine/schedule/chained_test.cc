// SPDX-License-Identifier: Apache-2.0
// Tests schedules that contain others: chained and warmup.
#include <gmock/gmock.h>

#include <string>

#include "engine/testing/schedule.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_schedule;
using ::testing::ThrowsMessage;

constexpr const char* kPlateau = "{name: plateau, patience: 0, gamma: 0.5}";

void observe(Schedule& schedule, std::int64_t step, double loss) { schedule.observe(step, {{"loss", loss}}); }

TEST(Chained, EachPartCountsItsOwnSteps) {
  const auto chained = make_schedule(
      "{name: chained, parts: [{schedule: linear, steps: 4}, {schedule: linear, steps: 2}, {schedule: linear}]}");
  for (const auto& [step, factor] : std::initializer_list<std::pair<std::int64_t, double>>{
           {0, 1}, {2, 0.5}, {3, 0.25}, {4, 1}, {5, 0.5}, {6, 1}, {8, 0.5}, {10, 0}, {11, 0}}) {
    EXPECT_DOUBLE_EQ(chained->factor(step, 10), factor) << "at step " << step;
  }
}

TEST(Chained, TheLastPartKeepsItsFinalFactor) {
  const auto chained = make_schedule("{name: chained, parts: [{schedule: {name: linear, to: 0.2}, steps: 4}]}");
  EXPECT_DOUBLE_EQ(chained->factor(3, 100), 0.4);
  EXPECT_DOUBLE_EQ(chained->factor(99, 100), 0.2);
}

TEST(Chained, PartsMayBeChained) {
  const auto chained = make_schedule(
      "{name: chained, parts: [{schedule: constant, steps: 2}, "
      "{schedule: {name: chained, parts: [{schedule: linear, steps: 4}, {schedule: constant}]}}]}");
  EXPECT_DOUBLE_EQ(chained->factor(4, 10), 0.5);
  EXPECT_DOUBLE_EQ(chained->factor(6, 10), 1);
}

TEST(Chained, TestsGoToThePartThatMadeTheUpdates) {
  const std::string plateau = kPlateau;
  const auto chained =
      make_schedule("{name: chained, parts: [{schedule: " + plateau + ", steps: 4}, {schedule: " + plateau + "}]}");
  observe(*chained, 2, 1.0);
  observe(*chained, 4, 2.0);  // after the first part's last update
  EXPECT_EQ(chained->factor(3, 10), 0.5);
  EXPECT_EQ(chained->factor(4, 10), 1);
  observe(*chained, 5, 3.0);  // the first test of the second part is the best so far
  EXPECT_EQ(chained->factor(5, 10), 1);
  observe(*chained, 6, 3.0);
  EXPECT_EQ(chained->factor(6, 10), 0.5);
  EXPECT_THAT(chained->monitored_metrics(), ElementsAre("loss", "loss"));
}

TEST(Chained, ContinuesFromItsState) {
  const std::string yaml = std::string("{name: chained, parts: [{schedule: constant, steps: 4}, {schedule: ") +
                           kPlateau + ", steps: 4}, {schedule: " + kPlateau + "}]}";
  const auto before = make_schedule(yaml), after = make_schedule(yaml);
  observe(*before, 6, 1.0);
  observe(*before, 7, 1.0);
  after->load(before->state());
  EXPECT_EQ(after->factor(7, 20), 0.5);
  EXPECT_EQ(after->factor(8, 20), 1);
  EXPECT_THAT([&] { after->load({1, 2}); }, ThrowsMessage<DataError>(HasSubstr("another schedule")));
}

TEST(Chained, RefusesPartsThatCannotFollow) {
  EXPECT_THAT([] { make_schedule("chained"); }, ThrowsMessage<ConfigError>(HasSubstr("needs parts")));
  EXPECT_THAT([] { make_schedule("{name: chained, parts: [{schedule: cosine}, {schedule: constant}]}"); },
              ThrowsMessage<ConfigError>(HasSubstr("another one follows")));
  EXPECT_THROW(make_schedule("{name: chained, parts: [{schedule: cosine, steps: -1}]}"), ConfigError);
}

TEST(Warmup, MultipliesAnySchedule) {
  const auto warmup = make_schedule("{name: warmup, over: 4, schedule: {name: step, every: 3, gamma: 0.1}}");
  EXPECT_DOUBLE_EQ(warmup->factor(0, 100), 0.25);
  EXPECT_DOUBLE_EQ(warmup->factor(2, 100), 0.75);
  EXPECT_DOUBLE_EQ(warmup->factor(3, 100), 0.1) << "the schedule's own steps stay where they are";
  EXPECT_DOUBLE_EQ(warmup->factor(6, 100), 0.01);
}

TEST(Warmup, BeginsWithItsFirstFactor) {
  const auto warmup = make_schedule("{name: warmup, over: 2, from: 0.5}");
  EXPECT_DOUBLE_EQ(warmup->factor(0, 9), 0.5);
  EXPECT_DOUBLE_EQ(warmup->factor(1, 9), 0.75);
  EXPECT_DOUBLE_EQ(warmup->factor(2, 9), 1);
  EXPECT_DOUBLE_EQ(make_schedule("{name: warmup, over: 2, from: 0}")->factor(0, 9), 0);
}

TEST(Warmup, PassesTestsAndStateOn) {
  const std::string yaml = std::string("{name: warmup, over: 1, schedule: ") + kPlateau + "}";
  const auto before = make_schedule(yaml), after = make_schedule(yaml);
  EXPECT_THAT(before->monitored_metrics(), ElementsAre("loss"));
  observe(*before, 1, 1.0);
  observe(*before, 2, 1.0);
  EXPECT_EQ(before->factor(2, 9), 0.5);
  after->load(before->state());
  EXPECT_EQ(after->factor(2, 9), 0.5);
}

TEST(Nested, ConfigsReadBackWhatTheyWrite) {
  const auto schedule = config::load_as<Schedules::Choice>(
      "schedule",
      "{name: warmup, over: 5, schedule: {name: chained, parts: [{schedule: {name: linear, to: 0.5}, steps: 7}, "
      "{schedule: cosine}]}}",
      "test.yaml");
  const std::string text = config::dump_as("schedule", schedule);
  const auto copy = config::load_as<Schedules::Choice>("schedule", text.substr(text.find(':') + 1), "dump.yaml");
  for (std::int64_t step = 0; step < 20; ++step) {
    EXPECT_EQ(copy.make()->factor(step, 20), schedule.make()->factor(step, 20));
  }
  EXPECT_THAT(text, HasSubstr("parts"));
}

}  // namespace
}  // namespace phalanx
