// SPDX-License-Identifier: Apache-2.0
// Loses ranks, or gets new ones, while each rank keeps the size of its batch. Each epoch still takes each sample once.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>

#include "engine/checkpoint/folder.h"
#include "engine/testing/recovery.h"
#include "engine/testing/run.h"
#include "framework/base/files.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using testing::Changes;
using testing::column;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::metrics;
using ::testing::Not;
using testing::plus;
using testing::run_losing;
using testing::run_with_newcomers;
using testing::summary;
using testing::TakenSamples;

// 3 epochs of 100 samples, with 8 samples for each of 3 ranks.
const Changes kPerRank{"determinism=run", "faults.batch=per_rank", "train.global_batch_size=24", "schedule=cosine",
                       "checkpoint.keep_last=10"};

TEST(Recovery, EachSampleIsTakenOnceWhenTheBatchPerRankIsKept) {
  TakenSamples whole, rest;
  const auto undisturbed = run_losing(3, {}, kPerRank, nullptr, &whole);
  EXPECT_THAT(whole.sizes(), ElementsAre(24, 24, 24, 24, 4, 24, 24, 24, 24, 4, 24, 24, 24, 24, 4));
  const auto lost = run_losing(3, {{.rank = 0, .step = 7}}, kPerRank, nullptr, &rest);
  EXPECT_THAT(rest.sizes(6), ElementsAre(24, 24, 16, 16, 16, 4, 16, 16, 16, 16, 16, 16, 4));
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(rest.epoch(epoch), whole.epoch(epoch)) << epoch;
  EXPECT_EQ(summary(lost).at("steps"), 18);
  // The schedule follows the samples.
  const auto rates = column<double>(metrics(undisturbed, "train"), "learning_rate");
  const auto rates_of_lost = column<double>(metrics(lost, "train"), "learning_rate");
  EXPECT_EQ(rates_of_lost.back(), rates.back());
  EXPECT_TRUE(std::ranges::is_sorted(rates_of_lost, std::greater<>()));
}

TEST(Recovery, EachSampleIsTakenOnceAfterSeveralLosses) {
  TakenSamples whole, rest;
  (void)run_losing(3, {}, kPerRank, nullptr, &whole);
  // The second loss is in the second step on 2 ranks, in the third one, and in the last one of the epoch.
  for (const std::int64_t second : {7, 8, 10}) {
    TakenSamples taken;
    (void)run_losing(3, {{.rank = 0, .step = 6}, {.rank = 2, .step = second}}, kPerRank, nullptr, &taken);
    for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << second << ", " << epoch;
    EXPECT_EQ(taken.sizes().back(), 4);  // 100 samples in steps of 8
  }
}

TEST(Recovery, ALossAfterTheLastStepOfAnEpochRepeatsNoSample) {
  TakenSamples whole, taken;
  (void)run_losing(3, {}, kPerRank, nullptr, &whole);
  const auto lost = run_losing(3, {{.rank = 1, .step = 5, .event = Event::kUpdate, .phase = HookPhase::kEvaluate}},
                               kPerRank, nullptr, &taken);
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << epoch;
  EXPECT_EQ(summary(lost).at("steps"), 5 + 7 + 7);
}

TEST(Recovery, ACopyKeepsThePlaceInTheEpochToo) {
  TakenSamples whole, taken;
  const auto changes = plus(kPerRank, {"strategy=sharded", "faults.copies_every=3"});
  (void)run_losing(3, {}, changes, nullptr, &whole);
  (void)run_losing(3, {{.rank = 1, .step = 8}}, changes, nullptr, &taken);
  EXPECT_THAT(taken.sizes(6), ElementsAre(24, 16, 16, 16, 16, 12, 16, 16, 16, 16, 16, 16, 4));
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << epoch;
}

TEST(Recovery, EachSampleIsTakenOnceWhenTheBatchGrowsAgain) {
  TakenSamples whole;
  const auto undisturbed = run_losing(3, {}, kPerRank, nullptr, &whole);
  const auto rates = column<double>(metrics(undisturbed, "train"), "learning_rate");
  // Two of three ranks take 16 samples, the last 4 of an epoch in its 7th step.
  for (const auto* const strategy : {"strategy=all_reduce", "strategy=sharded"}) {
    for (const std::int64_t step : {2, 6, 7, 9}) {
      TakenSamples taken;
      const auto grown = run_with_newcomers({.step = step, .began_with = 3}, plus(kPerRank, {strategy}), &taken);
      for (const int epoch : {0, 1, 2}) EXPECT_EQ(taken.epoch(epoch), whole.epoch(epoch)) << step << ", " << epoch;
      const auto sizes = taken.sizes();
      EXPECT_EQ(sizes.at(static_cast<std::size_t>(step) - 1), step == 7 ? 4 : 16) << step;
      EXPECT_EQ(sizes.at(static_cast<std::size_t>(step)), step == 6 ? 4 : 24) << step;
      EXPECT_EQ(column<double>(metrics(grown, "train"), "learning_rate").back(), rates.back()) << step;
    }
  }
}

TEST(Recovery, ACheckpointOfSmallerBatchesContinuesWithTheConfiguredOnes) {
  TakenSamples whole, taken, resumed;
  (void)run_losing(3, {}, kPerRank, nullptr, &whole);
  const auto lost = run_losing(3, {{.rank = 0, .step = 7}}, kPerRank, nullptr, &taken);
  const auto path = CheckpointFolder(lost.folder.checkpoints()).final_path(9);  // after 80 samples of epoch 1
  (void)run_losing(3, {}, plus(kPerRank, {"checkpoint.resume=" + path}), nullptr, &resumed);
  EXPECT_THAT(resumed.sizes(), ElementsAre(20, 24, 24, 24, 24, 4));
  auto& steps = resumed.steps();
  for (std::int64_t step = 1; step <= 9; ++step) steps[step] = taken.steps().at(step);
  for (const int epoch : {0, 1, 2}) EXPECT_EQ(resumed.epoch(epoch), whole.epoch(epoch)) << epoch;
}

// With the configured batches alone, there would be 15 steps.
TEST(Recovery, ATraceOfARunThatResumesAfterSmallerBatchesCountsAllSteps) {
  const auto lost = run_losing(3, {{.rank = 0, .step = 7}}, kPerRank);
  const auto path = CheckpointFolder(lost.folder.checkpoints()).final_path(15);
  const auto resumed =
      run_losing(3, {}, plus(kPerRank, {"checkpoint.resume=" + path, "watch.profile={from: 16, to: 20}"}));
  EXPECT_EQ(summary(resumed).at("steps"), 17);
  const std::string trace = read_file(resumed.folder.trace());
  EXPECT_THAT(trace, AllOf(HasSubstr("\"step 16\""), HasSubstr("\"step 17\"")));
  EXPECT_THAT(trace, Not(HasSubstr("\"step 15\"")));
}

}  // namespace
}  // namespace phalanx
