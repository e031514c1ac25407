// SPDX-License-Identifier: Apache-2.0
// Ranks take part in a run from an exact point on. The run must equal an undisturbed run bit for bit or, if only one
// rank has some of its state, a run that resumes from a checkpoint of the same step on more ranks.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "engine/testing/recovery.h"
#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::final_weights;
using testing::kSharded;
using testing::plus;
using testing::resumed_weights;
using testing::run_losing;
using testing::run_with_newcomers;
using testing::steps_of;
using testing::summary;

TEST(Recovery, ANewcomerLeavesTheResultAsItIs) {
  const auto undisturbed = run_losing(2, {});
  for (const std::int64_t step : {2, 3, 4, 6, 11}) {
    const auto grown = run_with_newcomers({.step = step});
    EXPECT_TRUE(at::equal(final_weights(grown), final_weights(undisturbed))) << step;
    EXPECT_EQ(steps_of(grown, "test"), steps_of(undisturbed, "test")) << step;
    EXPECT_EQ(steps_of(grown, "train"), steps_of(undisturbed, "train")) << step;
    EXPECT_EQ(summary(grown).at("ranks"), 3);
  }
}

TEST(Recovery, ANewcomerHasAllStateOfTheRun) {
  const auto undisturbed = run_losing(2, {});
  for (const std::int64_t step : {3, 4}) {
    const auto grown = run_with_newcomers({.step = 3, .ends_at = step});
    EXPECT_TRUE(at::equal(final_weights(grown), final_weights(undisturbed))) << step;
  }
}

TEST(Recovery, ANewcomerGetsWhatOnlyOneRankHas) {
  for (const auto* const strategy : {"strategy=sharded", "strategy={sharded: {stage: 2}}",
                                     "strategy={sharded: {stage: 3}}", "strategy={sharded: {one_copy: true}}",
                                     "strategy={name: all_reduce, compression: {name: topk, fraction: 0.3}}"}) {
    const auto changes = plus(kSharded, {strategy});
    const auto undisturbed = run_losing(2, {}, changes);
    const auto grown = run_with_newcomers({.step = 6}, changes);
    EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 3, changes))) << strategy;
    EXPECT_EQ(steps_of(grown, "test"), steps_of(undisturbed, "test")) << strategy;
    EXPECT_EQ(steps_of(grown, "train"), steps_of(undisturbed, "train")) << strategy;
    EXPECT_EQ(summary(grown).at("ranks"), 3) << strategy;
  }
}

// The last copy before that may be older, and the step may be the last one of an epoch.
TEST(Recovery, ANewcomerGetsItAfterAnyStep) {
  const auto changes = plus(kSharded, {"faults.copies_every=1000", "checkpoint.keep_last=20"});
  const auto undisturbed = run_losing(2, {}, plus(changes, {"checkpoint.every_steps=1"}));
  for (const std::int64_t step : {2, 4, 5, 8, 11}) {
    const auto grown = run_with_newcomers({.step = step}, changes);
    EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, step, 3, changes))) << step;
  }
}

TEST(Recovery, ASingleRankGivesNewcomersAllItHas) {
  const auto undisturbed = run_losing(1, {}, kSharded);
  const auto grown = run_with_newcomers({.step = 6, .ranks = 1, .newcomers = 2}, kSharded);
  EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 3, kSharded)));
}

TEST(Recovery, NewcomersHaveACopyOfWhatTheyGot) {
  const auto undisturbed = run_losing(2, {}, kSharded);
  const auto grown = run_with_newcomers({.step = 6, .ends_at = 7}, kSharded);
  EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 2, kSharded)));
  EXPECT_EQ(summary(grown).at("ranks"), 2);
}

}  // namespace
}  // namespace phalanx
