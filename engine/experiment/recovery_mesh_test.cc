// SPDX-License-Identifier: Apache-2.0
// Loses ranks of replicas that consist of several ranks, or gets new replicas.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "engine/checkpoint/folder.h"
#include "engine/testing/recovery.h"
#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::final_weights;
using testing::kSharded;
using testing::plus;
using testing::resumed_weights;
using testing::run_losing;
using testing::run_with_newcomers;
using testing::steps_of;
using testing::summary;

// Replicas of two ranks each, of which one is lost.
const Changes kTensor{"mesh.tensor=2"}, kPipe{"mesh.pipe=2", "pipeline.micro_batches=2"},
    kContext{"mesh.context=2", "dataset=padded_tokens_under_test",
             "model={name: char_lm, layers: 1, heads: 2, width: 16}"};
const Changes kMesh = plus(kSharded, {"strategy=all_reduce"});

// Loses a rank at several points of step 6 on such a mesh, which goes back to the copy of step 3.
void expect_without_replica(const Changes& mesh) {
  const auto changes = plus(kMesh, mesh);
  const auto undisturbed = run_losing(4, {}, changes);
  const auto expected = resumed_weights(undisturbed, 3, 2, changes);
  for (const auto& [rank, event] : {std::pair(1, Event::kSample), std::pair(2, Event::kBackward),
                                    std::pair(1, Event::kBackward), std::pair(3, Event::kUpdate)}) {
    const auto lost = run_losing(4, {{.rank = rank, .step = 5, .event = event}}, changes);
    const auto where = std::string(to_string(event)) + " of rank " + std::to_string(rank);
    EXPECT_TRUE(at::equal(final_weights(lost), expected)) << where;
    EXPECT_EQ(steps_of(lost, "test"), steps_of(undisturbed, "test")) << where;
    EXPECT_EQ(steps_of(lost, "train"), steps_of(undisturbed, "train")) << where;
    EXPECT_EQ(summary(lost).at("ranks"), 2) << where;
  }
}

TEST(Recovery, AMeshGoesOnWithoutTheReplicaThatHasLostARank) { expect_without_replica(kTensor); }

TEST(Recovery, AMeshOfASharingStrategyDoesToo) { expect_without_replica(plus(kTensor, {"strategy=sharded"})); }

TEST(Recovery, APipelineGoesOnWithoutTheReplicaThatHasLostARank) { expect_without_replica(kPipe); }

TEST(Recovery, SequencesThatRanksShareGoOnWithoutTheReplicaThatHasLostARank) { expect_without_replica(kContext); }

TEST(Recovery, AMeshGetsANewReplica) {
  for (const auto& mesh : {kTensor, plus(kTensor, {"strategy=sharded"})}) {
    const auto changes = plus(kMesh, mesh);
    const auto undisturbed = run_losing(4, {}, changes);
    const auto grown = run_with_newcomers({.step = 6, .ranks = 4, .newcomers = 2}, changes);
    EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 6, changes))) << mesh.back();
    EXPECT_EQ(steps_of(grown, "test"), steps_of(undisturbed, "test")) << mesh.back();
    EXPECT_EQ(summary(grown).at("ranks"), 6) << mesh.back();
  }
}

// A single replica keeps no copies for losses, since any loss would end it.
TEST(Recovery, ASingleReplicaGivesANewOneAllItHas) {
  const auto changes = plus(kMesh, kTensor);
  const auto undisturbed = run_losing(2, {}, changes);
  const auto grown = run_with_newcomers({.step = 6, .ranks = 2, .newcomers = 2}, changes);
  EXPECT_TRUE(at::equal(final_weights(grown), resumed_weights(undisturbed, 6, 4, changes)));
}

TEST(Recovery, AMeshMayLoseReplicasOneAfterTheOther) {
  const auto changes = plus(kMesh, kTensor);
  const auto undisturbed = run_losing(6, {}, changes);
  const auto path = CheckpointFolder(undisturbed.folder.checkpoints()).final_path(3);
  const auto first_loss = run_losing(4, {}, plus(changes, {"checkpoint.resume=" + path}));
  const auto lost = run_losing(6, {{.rank = 1, .step = 5}, {.rank = 4, .step = 8}}, changes);
  EXPECT_TRUE(at::equal(final_weights(lost), resumed_weights(first_loss, 6, 2, changes)));
  EXPECT_EQ(summary(lost).at("ranks"), 2);
}

}  // namespace
}  // namespace phalanx
