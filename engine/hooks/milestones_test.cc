// SPDX-License-Identifier: Apache-2.0
#include "engine/hooks/milestones.h"

#include <gtest/gtest.h>

#include <string>

#include "framework/base/config/config.h"

namespace phalanx {
namespace {

ExpectConfig of(const std::string& yaml) { return config::load_as<ExpectConfig>("expect", yaml, "test.yaml"); }

MetricsRecord measured(std::int64_t epoch, double value, double seconds = 0) {
  return {.epoch = epoch, .split = "test", .metrics = {{"loss", value}}, .seconds = seconds};
}

TEST(Milestones, KeepOnlyWhatIsExpected) {
  const auto expect = of("{epochs: {2: {test: {loss: {max: 1}}}}}");
  Milestones milestones(expect);
  milestones.add(measured(0, 3));
  milestones.add(measured(1, 2));
  EXPECT_EQ(milestones.in_epoch("1", "test", "loss"), std::nullopt);
  EXPECT_EQ(milestones.in_epoch("2", "test", "loss"), 2);
  EXPECT_EQ(milestones.in_epoch("2", "train", "loss"), std::nullopt);
}

TEST(Milestones, RememberTheFirstTimeThatAValueWasReached) {
  const auto expect = of("{reach: [{metric: loss, value: 2, best: lowest, seconds: 1}]}");
  const ReachConfig& reach = expect.reach[0];
  Milestones milestones(expect);
  milestones.add(measured(0, 3, 10));
  EXPECT_FALSE(milestones.reached(reach));
  EXPECT_EQ(milestones.best(reach), 3);
  milestones.add(measured(1, 2, 20));
  milestones.add(measured(2, 1, 30));
  milestones.add(measured(3, 4, 40));
  ASSERT_TRUE(milestones.reached(reach));
  EXPECT_EQ(milestones.reached(reach)->seconds, 20);
  EXPECT_EQ(milestones.reached(reach)->epochs, 2);
  EXPECT_EQ(milestones.best(reach), 1);
}

TEST(Milestones, ContinueWhenARunResumes) {
  const auto expect =
      of("{epochs: {1: {test: {loss: {max: 1}}}}, reach: [{metric: loss, value: 2, best: lowest, seconds: 1}]}");
  Milestones before(expect), after(expect);
  before.add(measured(0, 1.5, 10));
  const NamedTensors saved = before.part().save();
  after.part().load({.ranks = 1, .of = [&](int) { return saved; }});
  EXPECT_EQ(after.in_epoch("1", "test", "loss"), 1.5);
  EXPECT_EQ(after.reached(expect.reach[0])->seconds, 10);
}

TEST(Milestones, ValuesOfAnotherConfigAreNotMistaken) {
  const auto expect = of("{reach: [{metric: loss, value: 2, best: lowest, seconds: 1}]}");
  const auto other = of("{reach: [{metric: loss, value: 1, best: lowest, seconds: 1}]}");
  Milestones before(expect), after(other);
  before.add(measured(0, 1.5, 10));
  const NamedTensors saved = before.part().save();
  after.part().load({.ranks = 1, .of = [&](int) { return saved; }});
  EXPECT_FALSE(after.reached(other.reach[0]));
}

TEST(Milestones, StartEmptyFromACheckpointWithoutThem) {
  const auto expect = of("{epochs: {1: {test: {loss: {max: 1}}}}}");
  Milestones milestones(expect);
  milestones.part().load({.ranks = 1, .of = [](int) { return NamedTensors(); }});
  EXPECT_EQ(milestones.in_epoch("1", "test", "loss"), std::nullopt);
}

}  // namespace
}  // namespace phalanx
