// SPDX-License-Identifier: Apache-2.0
// Tests what becomes of section expect at the end of a run.
#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using testing::new_folder;
using testing::run_tiny;
using testing::summary;

TEST(Expectations, AStoppedRunIsNotHeldToItsExpectation) {
  const auto one = run_tiny(1, new_folder(), {"expect.test.accuracy.min=1"}, {.stop_asked = [](int) { return true; }});
  EXPECT_EQ(one.errors[0], "");
  EXPECT_TRUE(one.results[0].stopped);
}

TEST(Expectations, AnExpectationThatIsNotReachedIsAnErrorOnEveryRankAndStillLeavesTheRun) {
  const auto two = run_tiny(2, new_folder(), {"expect.test.accuracy.min=1", "train.max_steps=1"});
  EXPECT_THAT(two.errors, Each(HasSubstr("expect.test.accuracy.min: wanted >= 1, got ")));
  EXPECT_EQ(summary(two).at("expectations").at(0).at("met"), false);
  EXPECT_TRUE(std::filesystem::exists(two.folder.weights()));
}

TEST(Expectations, AnExpectationThatIsReachedIsNoError) {
  EXPECT_THAT(run_tiny(2, new_folder(), {"expect.test.accuracy.min=0.05"}).errors, Each(""));
}

TEST(Expectations, ListsAllExpectationsThatAreNotReached) {
  const auto two = run_tiny(2, new_folder(),
                            {"expect={test: {accuracy: {min: 1}}, epochs: {2: {test: {loss: {max: 0}}}}, memory: {max: "
                             "1KB}, throughput: {min: 1}, reach: [{metric: loss, value: 0, epochs: 2}]}",
                             "train.max_steps=8"});
  for (const char* key : {"test.accuracy.min", "epochs.2.test.loss.max", "memory.max", "reach[0].epochs"}) {
    EXPECT_THAT(two.errors, Each(HasSubstr("\nexpect." + std::string(key) + ": wanted ")));
  }
  EXPECT_THAT(two.errors, Each(HasSubstr("4 of 5 expectations are not met")));
  const auto measured = summary(two);
  EXPECT_EQ(measured.at("expectations").size(), 5u);
  EXPECT_EQ(measured.at("throughput"), measured.at("samples_per_second"));
  EXPECT_EQ(measured.at("peak_memory").size(), 2u);
  EXPECT_GT(measured.at("peak_memory").at(1), 1 << 20);
}

TEST(Expectations, KnowsWhichLossIsBetter) {
  EXPECT_THAT(run_tiny(1, new_folder(), {"expect.reach=[{metric: loss, value: 1000, epochs: 1}]"}).errors, Each(""));
  EXPECT_THAT(run_tiny(1, new_folder(),
                       {"evaluate.meters=[{meter: loss}, {meter: class_error}]",
                        "expect.reach=[{metric: class_error_top1, value: 0.5, epochs: 1}]"})
                  .errors,
              Each(HasSubstr("expect.reach[0].best: auto knows only")));
}

TEST(Expectations, AResumedRunKnowsTheEpochsBefore) {
  const std::string expect =
      "expect={epochs: {1: {test: {loss: {max: 1000}}}}, reach: [{metric: loss, value: 1000, epochs: 1}]}";
  const auto first =
      run_tiny(1, new_folder(), {expect}, {.stop_asked = [polls = 0](int) mutable { return ++polls == 6; }});
  ASSERT_TRUE(first.results[0].stopped);
  EXPECT_EQ(summary(first).at("expectations").size(), 0u) << "a stopped run is not held to them";
  const auto second = run_tiny(1, first.folder, {expect, "checkpoint.resume=auto"});
  EXPECT_THAT(second.began_after, Each(Ge(5)));
  EXPECT_THAT(second.errors, Each(""));
  EXPECT_EQ(summary(second).at("expectations").size(), 2u);
}

}  // namespace
}  // namespace phalanx
