// SPDX-License-Identifier: Apache-2.0
#include "engine/build/replica.h"

#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include "engine/testing/phases.h"

namespace phalanx {
namespace {

using testing::configured;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::refusal;
using testing::run_ranks;

TEST(BuildReplica, StartsWithTheInitialWeightsOnAnyMesh) {
  for (const char* mesh : {"mesh.tensor=2", "mesh.pipe=2", "mesh.data=2"}) {
    run_ranks("inproc", 2, [mesh](const CommunicatorPtr& world) {
      const auto run = configured({mesh});
      const Mesh all = run.mesh(world);
      Watching watching(run.config.watch, all.control(), RunFolder());
      const Replica replica = build_replica(run.config, *run.task, all, {}, watching);
      const NamedTensors weights = replica.whole_weights(true);
      const bool first = world->rank() == 0;
      const NamedTensors initial = first ? run.initial_model()->named_parameters() : NamedTensors();
      ASSERT_EQ(weights.size(), initial.size()) << mesh;
      for (std::size_t i = 0; i < initial.size(); ++i) {
        EXPECT_EQ(weights[i].first, initial[i].first);
        EXPECT_TRUE(at::equal(weights[i].second, initial[i].second)) << mesh << " " << initial[i].first;
      }
    });
  }
}

TEST(BuildReplica, StaysValidWhenItIsMoved) {
  run_ranks("inproc", 1, [](const CommunicatorPtr& world) {
    const auto run = configured({"train.clip_norm=1"});
    const Mesh mesh = run.mesh(world);
    Watching watching(run.config.watch, mesh.control(), RunFolder());
    Replica first = build_replica(run.config, *run.task, mesh, {}, watching);
    const Replica replica = std::move(first);
    EXPECT_EQ(&replica.mesh(), &replica.part->mesh);
    int called = 0;
    replica.as_evaluated([&] { ++called; });
    EXPECT_EQ(called, 1);
    EXPECT_THAT(replica.elsewhere(), IsEmpty());
    EXPECT_THAT(replica.pipeline_metrics(), IsEmpty());
  });
}

TEST(BuildReplica, RefusesToRecordAStepThatCommunicates) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const auto run = configured({"strategy=overlapped", "train.cuda_graph=true"});
    const Mesh mesh = run.mesh(world);
    Watching watching(run.config.watch, mesh.control(), RunFolder());
    EXPECT_THAT(refusal([&] { build_replica(run.config, *run.task, mesh, {}, watching); }),
                HasSubstr("overlapped communicates within forward or backward"));
  });
}

}  // namespace
}  // namespace phalanx
