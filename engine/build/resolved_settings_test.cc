// SPDX-License-Identifier: Apache-2.0
#include "engine/build/resolved_settings.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "engine/testing/phases.h"
#include "framework/partition/bucket_size.h"

namespace phalanx {
namespace {

using testing::configured;
using ::testing::HasSubstr;
using testing::run_ranks;

ResolvedSettings resolve(const CommunicatorPtr& world, const std::vector<std::string>& changes) {
  const auto run = configured(changes);
  return resolve_settings(run.config, RunFolder(::testing::TempDir() + "no_run"), run.part(run.mesh(world)), at::kCPU);
}

TEST(ResolvedSettings, HaveTheBucketSizeOfTheConfig) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    EXPECT_EQ(resolve(world, {"framework.bucket_bytes=4KB"}).bucket_bytes, 4096);
    EXPECT_EQ(resolve(world, {"framework.bucket_bytes=default"}).bucket_bytes,
              default_bucket_bytes(0, false, at::kCPU));
  });
}

TEST(ResolvedSettings, HaveTheSameMeasuredBucketSizeOnAllRanks) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto bytes = resolve(world, {"framework.bucket_bytes=auto"}).bucket_bytes;
    EXPECT_GT(bytes, 0);
    const at::Tensor largest = at::full({1}, bytes, at::kLong);
    world->all_reduce(largest, Reduction::kMax).wait();
    EXPECT_EQ(largest.item<std::int64_t>(), bytes);
  });
}

TEST(ResolvedSettings, NameTheStrategyThatAutoSelects) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    EXPECT_EQ(resolve(world, {"strategy=auto"}).strategy.selected(), "single");
    EXPECT_EQ(resolve(world, {"strategy=auto", "determinism=world_size_invariant"}).strategy.selected(), "all_reduce");
    EXPECT_EQ(resolve(world, {"strategy=overlapped"}).strategy.selected(), "overlapped");
  });
}

TEST(ResolvedSettings, AreDescribedWithEverythingThatChangesTheBits) {
  const auto run = configured({"mesh.tensor=2"});
  const auto text = describe({.strategy = run.config.strategy, .bucket_bytes = 4096}, run.config);
  EXPECT_THAT(text, HasSubstr("all_reduce"));
  EXPECT_THAT(text, HasSubstr("determinism: run"));
  EXPECT_THAT(text, HasSubstr("mesh.tensor: 2"));
  EXPECT_THAT(text, HasSubstr("bucket_bytes: 4096"));
}

// Checkpoints from before levels could be chosen must still count as those of the same strategy.
TEST(ResolvedSettings, AreDescribedWithLevelsOnlyIfTheyAreChosen) {
  const auto described = [](const std::vector<std::string>& changes) {
    const auto run = configured(changes);
    return describe({.strategy = run.config.strategy, .bucket_bytes = 4096}, run.config);
  };
  const std::string levels = "strategy={intra: overlapped, inter: local_sgd";
  EXPECT_THAT(described({levels + "}"}), ::testing::Not(HasSubstr("level:")));
  EXPECT_THAT(described({levels + "}"}), ::testing::Not(HasSubstr("topology")));
  const auto by_pair =
      described({levels + ", level: pair}", "framework.topology={levels: [pair], keys: {pair: {ranks: 2}}}"});
  EXPECT_THAT(by_pair, HasSubstr("level: pair"));
  EXPECT_THAT(by_pair, HasSubstr("ranks: 2"));
}

}  // namespace
}  // namespace phalanx
