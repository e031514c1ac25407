// SPDX-License-Identifier: Apache-2.0
// Loses ranks of a run at exact points. The run that goes on without them must equal an undisturbed run bit for bit.
#include "engine/testing/recovery.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <vector>

#include "engine/testing/run.h"
#include "framework/base/storage/safetensors.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::column;
using ::testing::ElementsAre;
using testing::final_weights;
using testing::Finished;
using testing::flat;
using testing::Json;
using testing::run_losing;
using testing::steps_of;
using testing::summary;

TEST(Recovery, ALossAtAnyPointOfAStepLeavesTheResultAsItIs) {
  const auto undisturbed = run_losing(3, {});
  for (const Event event : {Event::kSample, Event::kForward, Event::kBackward, Event::kUpdate}) {
    for (const int rank : {0, 1}) {
      const auto lost = run_losing(3, {{.rank = rank, .step = 5, .event = event}});
      EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)))
          << to_string(event) << " of rank " << rank;
      EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << to_string(event) << " of rank " << rank;
      EXPECT_EQ(summary(lost).at("ranks"), 2);
    }
  }
}

TEST(Recovery, ALossWhileHooksCommunicateIsRepeatedFromThere) {
  const auto undisturbed = run_losing(3, {});
  for (const auto phase : {HookPhase::kFirst, HookPhase::kVote, HookPhase::kEvaluate, HookPhase::kCheckpoint}) {
    const auto lost = run_losing(3, {{.rank = 2, .step = 6, .event = Event::kUpdate, .phase = phase}});
    EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed))) << static_cast<int>(phase);
    EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << static_cast<int>(phase);
  }
}

TEST(Recovery, AnEvaluationThatWasInterruptedIsRepeated) {
  const auto undisturbed = run_losing(2, {});
  const auto lost = run_losing(2, {{.rank = 1, .step = 6, .in_evaluation = true}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test"));
}

TEST(Recovery, TheLastEvaluationIsRepeatedToo) {
  const auto undisturbed = run_losing(2, {});
  const auto lost = run_losing(2, {{.rank = 0, .step = 12, .in_evaluation = true}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test"));
  EXPECT_EQ(summary(lost).at("steps"), 12);
}

TEST(Recovery, RanksMayBeLostOneAfterTheOther) {
  const auto undisturbed = run_losing(4, {});
  const auto lost = run_losing(4, {{.rank = 0, .step = 3}, {.rank = 2, .step = 4}, {.rank = 1, .step = 9}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  const Json lost_ranks = summary(lost).at("lost_ranks");
  EXPECT_THAT(column<std::int64_t>(lost_ranks.get<std::vector<Json>>(), "step"), ElementsAre(3, 4, 9));
}

TEST(Recovery, ALossDuringRecoveryIsSurvived) {
  const auto undisturbed = run_losing(3, {});
  const auto lost = run_losing(3, {{.rank = 0, .step = 5}, {.rank = 1, .step = 5, .event = Event::kStart}});
  EXPECT_TRUE(at::equal(final_weights(lost), final_weights(undisturbed)));
  EXPECT_EQ(summary(lost).at("ranks"), 1);
}

// Returns the weights and running statistics of the model norms_under_test.
at::Tensor weights_and_statistics(const Finished& run) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : load_safetensors(run.folder.weights())) {
    if (name != "number") all.push_back(tensor.to(at::kDouble));  // which differs between models
  }
  return flat(all);
}

// Running statistics change in the forward that is abandoned.
TEST(Recovery, BuffersAreAsBeforeTheStepThatIsAbandoned) {
  const Changes norms{"model=norms_under_test"};
  const auto undisturbed = run_losing(2, {}, norms);
  const auto lost = run_losing(2, {{.rank = 1, .step = 5}}, norms);
  EXPECT_TRUE(at::equal(weights_and_statistics(lost), weights_and_statistics(undisturbed)));
}

}  // namespace
}  // namespace phalanx
