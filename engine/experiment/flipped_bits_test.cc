// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/flipped_bits.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <string>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::Changes;
using ::testing::Each;
using testing::Finished;
using ::testing::HasSubstr;
using testing::metrics;
using testing::new_folder;
using testing::new_path;

// Trains on three ranks, the second of which has the fault in the fifth of 12 steps.
Finished run_with(const std::string& kind, Changes changes, std::int64_t times = 1, Event event = Event::kForward) {
  const PlannedFault fault{.kind = kind, .rank = 1, .step = 5, .event = event, .times = times, .note = new_path()};
  ::setenv(kPlannedFault, to_text(fault).c_str(), 1);
  changes.emplace_back("strategy=all_reduce");
  auto finished = testing::run_tiny(3, new_folder(), changes);
  ::unsetenv(kPlannedFault);
  return finished;
}

TEST(FlippedBits, OfParametersAreFound) {
  const auto three = run_with("flip_parameter", {"replica_check.every_steps=2"});
  EXPECT_THAT(three.errors, Each(HasSubstr("after step 6 replicas differ: parameter ")));
  EXPECT_THAT(three.errors, Each(HasSubstr(" on rank 1")));
}

TEST(FlippedBits, OfOptimizerStateAreFound) {
  const auto three = run_with("flip_optimizer", {"replica_check.every_steps=1", "optimizer.momentum=0.9"});
  EXPECT_THAT(three.errors, Each(HasSubstr("after step 5 replicas differ: ")));
  EXPECT_THAT(three.errors, Each(HasSubstr(" on rank 1")));
}

TEST(FlippedBits, OfBuffersAreFound) {
  const auto three =
      run_with("flip_buffer", {"replica_check.every_steps=1", "model={name: mobilenet_v2, width_mult: 0.1}",
                               "dataset.side=20", "train.sync_batch_norm=true", "train.max_steps=6"});
  EXPECT_THAT(three.errors, Each(HasSubstr("after step 5 replicas differ: buffer ")));
  EXPECT_THAT(three.errors, Each(HasSubstr(" on rank 1")));
}

// Shards begin with the buffers from before the step, whose changes are averaged over all ranks.
TEST(FlippedBits, OfBuffersWithVirtualShardsAreFoundAfterTheStepThatUsesThem) {
  const Changes changes{"replica_check.every_steps=1",
                        "model={name: mobilenet_v2, width_mult: 0.1}",
                        "dataset.side=20",
                        "dataset.train_samples=96",
                        "train.max_steps=6",
                        "determinism=world_size_invariant",
                        "train.virtual_shards=3"};
  const auto before = run_with("flip_buffer", changes, 1, Event::kSample);
  EXPECT_THAT(before.errors, Each(HasSubstr("after step 5 replicas differ: buffer ")));
  EXPECT_THAT(before.errors, Each(HasSubstr(" on rank 1")));
  const auto after = run_with("flip_buffer", changes, 1, Event::kUpdate);
  EXPECT_THAT(after.errors, Each(HasSubstr("after step 6 replicas differ: buffer ")));
  EXPECT_THAT(after.errors, Each(HasSubstr(" on rank 1")));
}

TEST(FlippedBits, OfARankTwiceEndARunThatIsStartedAgain) {
  const auto three =
      run_with("flip_parameter",
               {"replica_check={every_steps: 1, repair: true}", "launch.restarts=1", "checkpoint.every_steps=4"}, 2);
  EXPECT_THAT(three.errors, Each(HasSubstr("after step 6 replicas differ: parameter ")));
  EXPECT_THAT(three.errors, Each(HasSubstr(" on rank 1, for the second time")));
}

TEST(FlippedBits, OfGradientsAreCounted) {
  const Changes changes{
      "watch={every_steps: 1, gradient_norms: {every_steps: 1}, nan_guard: {every_steps: 0}, progress: false}"};
  Changes with_shards = changes;
  with_shards.insert(with_shards.end(), {"determinism=world_size_invariant", "train.virtual_shards=12"});
  for (const auto& one : {changes, with_shards}) {
    const auto three = run_with("flip_gradient", one);
    const auto lines = metrics(three, "train");
    ASSERT_GE(lines.size(), 5) << one.back();
    EXPECT_EQ(lines[3].at("gradient_outliers"), 0) << one.back();
    EXPECT_EQ(lines[4].at("gradient_outliers"), 1) << one.back();
  }
}

TEST(FlippedBits, OfCheckpointsInMemoryAreFound) {
  const auto three = run_with("flip_checkpoint", {"framework.checksums=true", "checkpoint.every_steps=3"});
  EXPECT_THAT(three.errors, Each(""));
  EXPECT_EQ(three.results.at(0).failed_checkpoints, 1);
}

}  // namespace
}  // namespace phalanx
