// SPDX-License-Identifier: Apache-2.0
#include "engine/build/flatten.h"

#include <gmock/gmock.h>

#include <set>
#include <string>
#include <vector>

#include "engine/testing/phases.h"

namespace phalanx {
namespace {

using testing::configured;
using testing::ConfiguredTask;
using ::testing::HasSubstr;
using testing::refusal;
using testing::run_ranks;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

FlatModel flatten_part(const ConfiguredTask& run, const PartitionedModel& part, std::int64_t bucket_bytes) {
  const TrainingTurns turns(run.config, *run.task, *part.model);
  return flatten(run.config, part, {.strategy = run.config.strategy, .bucket_bytes = bucket_bytes}, turns);
}

constexpr std::int64_t kLarge = 1 << 20;

TEST(Flatten, ClosesBucketsOfTheGivenSize) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const auto run = configured({});
    const PartitionedModel part = run.part(run.mesh(world));
    EXPECT_THAT(flatten_part(run, part, kLarge).parameters.buckets(), SizeIs(1));
    EXPECT_THAT(flatten_part(run, part, 1).parameters.buckets(), SizeIs(4)) << "a bucket for each parameter";
  });
}

TEST(Flatten, PadsBucketsThatRanksDivideToEqualParts) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    for (const std::string strategy : {"all_reduce", "sharded"}) {
      const auto run = configured({"strategy=" + strategy});
      const PartitionedModel part = run.part(run.mesh(world));
      const FlatModel flat = flatten_part(run, part, 1);
      bool padded = true;
      for (const auto& bucket : flat.parameters.buckets()) {
        padded &= bucket.values.numel() % (3 * FlatParameters::kPartUnit) == 0;
      }
      EXPECT_EQ(padded, strategy == "sharded");
    }
  });
}

TEST(Flatten, PutsExpertsIntoConsecutiveBucketsOfTheirOwn) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.expert=2", "model={name: moe_gpt, layers: 2, heads: 2, width: 8, experts: 4}"},
                                language_samples(8, 11));
    const PartitionedModel part = run.part(run.mesh(world));
    const FlatModel flat = flatten_part(run, part, 1 << 10);
    std::vector<bool> kinds;  // of consecutive buckets: true for experts
    for (const auto& bucket : flat.parameters.buckets()) {
      const bool experts = part.is_expert(bucket.segments.at(0).name);
      for (const auto& segment : bucket.segments) EXPECT_EQ(part.is_expert(segment.name), experts) << segment.name;
      if (kinds.empty() || kinds.back() != experts) kinds.push_back(experts);
    }
    EXPECT_THAT(kinds, UnorderedElementsAre(true, false));
    ASSERT_THAT(flat.groups, SizeIs(2));
    EXPECT_EQ(flat.groups[0].group->size(), 2);
    EXPECT_EQ(flat.groups[1].group->size(), 1) << "the other rank has other experts";
  });
}

TEST(Flatten, GivesEachBlockBucketsOfItsOwnIfValuesAreSharded) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"strategy={name: sharded, stage: 3}"});
    const PartitionedModel part = run.part(run.mesh(world));
    const FlatModel flat = flatten_part(run, part, kLarge);
    ASSERT_THAT(flat.parameters.buckets(), SizeIs(2));
    for (const auto& bucket : flat.parameters.buckets()) {
      std::set<std::string> layers;
      for (const auto& segment : bucket.segments) layers.insert(segment.name.substr(0, segment.name.find('.')));
      EXPECT_THAT(layers, SizeIs(1));
    }
  });
}

TEST(Flatten, RefusesRanksThatWouldHaveNothingToUpdate) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"mesh.tensor=2", "strategy=sync_ps", "init.freeze=fc1|weight"});
    const PartitionedModel part = run.part(run.mesh(world));
    EXPECT_THAT(refusal([&] { flatten_part(run, part, kLarge); }),
                HasSubstr("the other ranks would have nothing to update"))
        << "on both ranks";
  });
}

}  // namespace
}  // namespace phalanx
