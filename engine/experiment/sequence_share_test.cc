// SPDX-License-Identifier: Apache-2.0
// Tests mesh.context with sequences whose positions are sharded between ranks. Some positions have no target.
#include <gmock/gmock.h>

#include <string>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::complaint;
using ::testing::Each;
using testing::Finished;
using ::testing::HasSubstr;
using testing::metric;
using testing::new_folder;
using testing::run_tiny;

// Most samples end before the last of 8 tokens, so that ranks have different numbers of targets.
Finished run_shared(int ranks, Changes changes) {
  changes.insert(changes.begin(), {"model={name: char_lm, layers: 1, heads: 2, width: 16}",
                                   "dataset=padded_tokens_under_test", "train.epochs=4"});
  return run_tiny(ranks, new_folder(), changes);
}

TEST(SequenceShare, EveryTargetCountsOnceWhereverItIs) {
  const auto one = run_shared(1, {});
  for (const auto& [ranks, mesh] : {std::pair(2, "{context: 2}"), std::pair(4, "{data: 2, context: 2}")}) {
    for (const char* accumulate : {"1", "3"}) {
      const auto several = run_shared(
          ranks, {std::string("mesh=") + mesh, std::string("train.accumulate=") + accumulate, "strategy=all_reduce"});
      ASSERT_THAT(several.errors, Each("")) << mesh;
      EXPECT_LT(testing::relative_difference(several.weights[0], one.weights[0]), 1e-5) << mesh;
      for (const char* name : {"loss", "accuracy", "perplexity"}) {
        const auto &got = several.results[0], &expected = one.results[0];
        EXPECT_NEAR(metric(got.test, name), metric(expected.test, name), 1e-5) << mesh << " " << name;
        EXPECT_NEAR(metric(got.train, name), metric(expected.train, name), 1e-5) << mesh << " " << name;
      }
    }
  }
}

TEST(SequenceShare, RefusesSamplesThatAreNotSequences) {
  EXPECT_THAT(
      run_tiny(2, new_folder(), {"mesh.context=2"}).errors,
      Each(HasSubstr("mesh.context divides sequences in which every position has an input and a class number")));
  EXPECT_THAT(run_shared(3, {"mesh.context=3"}).errors,
              Each(HasSubstr("samples have 8 positions, which 3 ranks cannot divide into two equal chunks each (6 in "
                             "all); use samples of 6 positions, or mesh.context: 2")));
}

TEST(SequenceShare, NeedsAStrategyThatKeepsReplicasEqual) {
  const std::string context = "launch: {ranks: 2}, mesh: {context: 2}, ";
  EXPECT_EQ(complaint(context + "strategy: auto"), "");
  EXPECT_EQ(complaint(context + "strategy: sharded"), "");
  EXPECT_THAT(complaint(context + "strategy: {local_sgd: {every: 4}}"),
              HasSubstr("local_sgd lets parameters differ between the ranks of mesh.context"));
  EXPECT_THAT(complaint(context + "strategy: single"), HasSubstr("single trains on one rank"));
  EXPECT_THAT(complaint(context + "train: {data_parallel: 2}"), HasSubstr("with mesh.context above 1"));
}

TEST(SequenceParallel, NeedsATensorAxisAndTheModelsOwnPlan) {
  const std::string ranks = "launch: {ranks: 2}, ", plan = ", plan: [{layers: fc1, style: column}]";
  EXPECT_EQ(complaint(ranks + "mesh: {tensor: 2, sequence_parallel: true}"), "");
  EXPECT_EQ(
      complaint(ranks + "mesh: {tensor: 2, async_tensor: true}"),
      "config: mesh.async_tensor: overlaps the exchange of positions with products, but mesh.sequence_parallel is "
      "false");
  EXPECT_EQ(complaint(ranks + "mesh: {sequence_parallel: true}"),
            "config: mesh.sequence_parallel: divides positions among the ranks of mesh.tensor, which is 1");
  EXPECT_EQ(complaint(ranks + "mesh: {tensor: 2, sequence_parallel: true}" + plan),
            "config: plan: mesh.sequence_parallel works only with the model's own plan; remove one of the two");
}

}  // namespace
}  // namespace phalanx
