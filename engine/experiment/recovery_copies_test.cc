// SPDX-License-Identifier: Apache-2.0
// Loses ranks that alone have some of the state. The run that goes on must equal, bit for bit, a run that resumes from
// a checkpoint of the step of the copy on fewer ranks.
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "engine/testing/recovery.h"
#include "engine/testing/run.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::final_weights;
using ::testing::HasSubstr;
using testing::kSharded;
using testing::PlannedLoss;
using testing::plus;
using testing::relative_difference;
using testing::resumed_weights;
using testing::run_losing;
using testing::steps_of;
using testing::summary;

TEST(Recovery, GoesBackToACopyOfWhatOnlyOneRankHas) {
  for (const auto* const strategy :
       {"strategy=sharded", "strategy={sharded: {stage: 3}}", "strategy={sharded: {one_copy: true}}",
        "strategy={name: all_reduce, compression: {name: topk, fraction: 0.3}}"}) {
    const auto changes = plus(kSharded, {strategy});
    const auto undisturbed = run_losing(3, {}, changes);
    const auto expected = resumed_weights(undisturbed, 3, 2, changes);
    for (const Event event : {Event::kSample, Event::kBackward, Event::kUpdate}) {
      const auto lost = run_losing(3, {{.rank = 1, .step = 5, .event = event}}, changes);
      EXPECT_TRUE(at::equal(final_weights(lost), expected)) << strategy << ", " << to_string(event);
      EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << strategy << ", " << to_string(event);
      EXPECT_EQ(steps_of(lost, "train"), steps_of(undisturbed, "train")) << strategy << ", " << to_string(event);
      EXPECT_EQ(summary(lost).at("ranks"), 2);
    }
  }
}

TEST(Recovery, GoesBackToTheCopyOfTheStartOrOfTheEndOfAnEpoch) {
  const auto changes = plus(kSharded, {"faults.copies_every=4", "checkpoint.every_steps=4"});
  const auto undisturbed = run_losing(3, {}, changes);
  const auto early = run_losing(3, {{.rank = 0, .step = 1}}, changes);
  EXPECT_LT(relative_difference(final_weights(early), final_weights(undisturbed)), 1e-4);
  const auto late = run_losing(3, {{.rank = 0, .step = 6}}, changes);
  EXPECT_TRUE(at::equal(final_weights(late), resumed_weights(undisturbed, 4, 2, changes)));
  EXPECT_EQ(summary(late).at("steps"), 12);
}

TEST(Recovery, GoesBackNoFurtherThanToTheNewestCheckpoint) {
  const auto changes = plus(kSharded, {"faults.copies_every=1000"});
  const auto undisturbed = run_losing(3, {}, changes);
  const auto lost = run_losing(3, {{.rank = 1, .step = 8}}, changes);
  EXPECT_TRUE(at::equal(final_weights(lost), resumed_weights(undisturbed, 6, 2, changes)));
}

TEST(Recovery, RanksMayBeLostOneAfterTheOtherWithCopies) {
  const auto undisturbed = run_losing(4, {}, kSharded);
  const auto lost = run_losing(4,
                               {{.rank = 0, .step = 4},
                                {.rank = 1, .step = 3, .event = Event::kStart},
                                {.rank = 3, .step = 6, .event = Event::kUpdate, .phase = HookPhase::kCheckpoint}},
                               kSharded);
  EXPECT_LT(relative_difference(final_weights(lost), final_weights(undisturbed)), 1e-4);
  EXPECT_EQ(summary(lost).at("ranks"), 1);
}

const std::vector<PlannedLoss> kRankAndNeighbour{{.rank = 1, .step = 8}, {.rank = 2, .step = 8}};

TEST(Recovery, GoesBackToACheckpointIfCopiesAreLost) {
  const auto undisturbed = run_losing(4, {}, kSharded);
  const auto lost = run_losing(4, kRankAndNeighbour, kSharded);
  // The checkpoint of step 3 is complete, and that of step 6 may be.
  EXPECT_TRUE(at::equal(final_weights(lost), resumed_weights(undisturbed, 3, 2, kSharded)) ||
              at::equal(final_weights(lost), resumed_weights(undisturbed, 6, 2, kSharded)));
  EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test"));
}

TEST(Recovery, EndsIfCopiesAreLostAndThereIsNoCheckpoint) {
  std::vector<std::string> errors;
  (void)run_losing(4, kRankAndNeighbour, plus(kSharded, {"checkpoint.every_steps=0"}), &errors);
  EXPECT_THAT(errors, ElementsAre(HasSubstr("set checkpoint.every_steps"), HasSubstr("set checkpoint.every_steps")));
}

}  // namespace
}  // namespace phalanx
