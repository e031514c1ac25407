// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/mesh/mesh.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::run_ranks;

// Returns the ranks of the world that are in a group, in the order of the group.
std::vector<std::int64_t> members(Communicator& group, const Communicator& world) {
  const at::Tensor all = at::zeros({group.size()}, at::kLong);
  group.all_gather(all, at::full({1}, world.rank(), at::kLong)).wait();
  const auto* first = all.const_data_ptr<std::int64_t>();
  return {first, first + group.size()};
}

// A mesh of data x tensor x expert with two ranks each: rank = 4 data + 2 tensor + expert.
void run_cube(const std::function<void(const Mesh&, const CommunicatorPtr&)>& body) {
  run_ranks("inproc", 8, [&](const CommunicatorPtr& world) {
    MeshShape shape;
    shape[Axis::kData] = shape[Axis::kTensor] = shape[Axis::kExpert] = 2;
    body(Mesh(world, shape), world);
  });
}

TEST(Mesh, RanksArePositionsInRowMajorOrder) {
  run_cube([](const Mesh& mesh, const CommunicatorPtr& world) {
    EXPECT_EQ(mesh.position(Axis::kData), world->rank() / 4);
    EXPECT_EQ(mesh.position(Axis::kTensor), world->rank() / 2 % 2);
    EXPECT_EQ(mesh.position(Axis::kExpert), world->rank() % 2);
    EXPECT_EQ(mesh.position(Axis::kPipe), 0);
    EXPECT_EQ(mesh.shape()[Axis::kTensor], 2);
  });
}

TEST(Mesh, AGroupHasTheRanksThatDifferOnlyAlongItsAxes) {
  run_cube([](const Mesh& mesh, const CommunicatorPtr& world) {
    const std::int64_t rank = world->rank(), data = rank & 4, tensor = rank & 2, expert = rank & 1;
    EXPECT_THAT(members(*mesh.along(Axis::kData), *world), ElementsAre(tensor + expert, 4 + tensor + expert));
    EXPECT_THAT(members(*mesh.along(Axis::kTensor), *world), ElementsAre(data + expert, data + 2 + expert));
    EXPECT_THAT(members(*mesh.along(Axis::kExpert), *world), ElementsAre(data + tensor, data + tensor + 1));
    EXPECT_THAT(members(*mesh.along(Axis::kPipe), *world), ElementsAre(rank));
    EXPECT_THAT(members(*mesh.group({Axis::kData, Axis::kExpert}), *world),
                ElementsAre(tensor, tensor + 1, 4 + tensor, 5 + tensor));
    EXPECT_THAT(members(*mesh.group({Axis::kTensor, Axis::kData}), *world),
                ElementsAre(expert, 2 + expert, 4 + expert, 6 + expert));
    EXPECT_THAT(members(*mesh.group({Axis::kTensor, Axis::kExpert}), *world),
                ElementsAre(data, data + 1, data + 2, data + 3));
    EXPECT_THAT(members(*mesh.group({}), *world), ElementsAre(rank));
    EXPECT_EQ(mesh.group({Axis::kData, Axis::kTensor, Axis::kExpert}), world);
    EXPECT_EQ(mesh.world(), world);
  });
}

TEST(Mesh, NamesGroupsByWhatTheyHaveInCommon) {
  run_cube([](const Mesh& mesh, const CommunicatorPtr& world) {
    const std::int64_t data = world->rank() & 4, tensor = world->rank() & 2, expert = world->rank() & 1;
    EXPECT_THAT(members(*mesh.samples(), *world), ElementsAre(tensor, tensor + 1, 4 + tensor, 5 + tensor));
    EXPECT_EQ(mesh.batch(), mesh.samples()) << "without positions along the context axis";
    EXPECT_EQ(mesh.replicas(), mesh.batch());
    EXPECT_THAT(members(*mesh.model(), *world), ElementsAre(data + expert, data + 2 + expert));
    EXPECT_EQ(mesh.data(), mesh.along(Axis::kData));
  });
}

TEST(Mesh, ExpertsAreReplicatedOverFewerRanks) {
  run_cube([](const Mesh& mesh, const CommunicatorPtr& world) {
    const std::int64_t tensor = world->rank() & 2, expert = world->rank() & 1;
    EXPECT_THAT(members(*mesh.group({Axis::kData, Axis::kContext}), *world),
                ElementsAre(tensor + expert, 4 + tensor + expert));
  });
}

TEST(Mesh, PositionsOfASampleArePartsOfTheBatchButNotSamples) {
  run_ranks("inproc", 8, [](const CommunicatorPtr& world) {
    MeshShape shape;
    shape[Axis::kData] = shape[Axis::kPipe] = shape[Axis::kContext] = 2;
    const Mesh mesh(world, shape);
    const std::int64_t pipe = world->rank() & 2, context = world->rank() & 1;
    EXPECT_THAT(members(*mesh.samples(), *world), ElementsAre(pipe + context, 4 + pipe + context));
    EXPECT_THAT(members(*mesh.batch(), *world), ElementsAre(pipe, pipe + 1, 4 + pipe, 5 + pipe));
    EXPECT_EQ(mesh.replicas(), mesh.batch());
    EXPECT_EQ(mesh.model(), mesh.along(Axis::kPipe));
  });
}

TEST(Mesh, MakesAGroupOnce) {
  run_cube([](const Mesh& mesh, const CommunicatorPtr&) {
    const auto first = mesh.group({Axis::kTensor, Axis::kExpert});
    EXPECT_EQ(mesh.group({Axis::kExpert, Axis::kTensor, Axis::kPipe}), first) << "an axis of one rank changes nothing";
    const Mesh copy = mesh;
    EXPECT_EQ(copy.group({Axis::kTensor, Axis::kExpert}), first);
  });
}

TEST(Mesh, WithoutAShapeAllRanksAreReplicas) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const Mesh mesh(world);
    for (const auto& group : {mesh.data(), mesh.samples(), mesh.batch(), mesh.replicas()}) EXPECT_EQ(group, world);
    EXPECT_EQ(mesh.model()->size(), 1);
  });
}

TEST(Mesh, ControlMessagesGoOverTheControlGroups) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& world) {
    const CommunicatorPtr other = world->split(0, world->rank());
    MeshShape shape;
    shape[Axis::kData] = shape[Axis::kTensor] = 2;
    const Mesh mesh(world, shape, other), plain(world, shape);
    EXPECT_EQ(mesh.control(), other);
    EXPECT_EQ(mesh.world(), world);
    EXPECT_NE(mesh.control(kBatchAxes), mesh.batch());
    EXPECT_EQ(members(*mesh.control(kBatchAxes), *world), members(*mesh.batch(), *world));
    EXPECT_EQ(plain.control(), world);
    EXPECT_EQ(plain.control(kBatchAxes), plain.batch());
  });
}

TEST(Mesh, CoversTheWorld) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    MeshShape shape;
    shape[Axis::kData] = 2;
    EXPECT_THROW(Mesh(world, shape), std::invalid_argument);
    shape[Axis::kData] = 3;
    shape[Axis::kPipe] = 0;
    EXPECT_THROW(Mesh(world, shape), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx
