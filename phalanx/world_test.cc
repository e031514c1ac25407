// SPDX-License-Identifier: Apache-2.0
#include "phalanx/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "launch/temporary_folder.h"
#include "phalanx/kernels.h"
#include "phalanx/parameter_server.h"
#include "phalanx/testing/worlds.h"
#include "phalanx/version.h"

namespace phalanx {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::message_of;
using testing::run_worlds;

TEST(World, KnowsThePlaceOfARank) {
  run_worlds(3, [](World& world) {
    EXPECT_EQ(world.size(), 3);
    EXPECT_EQ(world.local_rank(), world.rank());
    EXPECT_EQ(world.local_size(), 3);
    EXPECT_EQ(world.host(), 0);
    EXPECT_EQ(world.hosts(), 1);
    EXPECT_EQ(world.device(), c10::kCPU);
  });
}

TEST(World, HasCollectivesGroupsAndMeshes) {
  run_worlds(4, [](World& world) {
    const at::Tensor sum = at::full({1}, world.rank());
    world.communicator().all_reduce(sum, Reduction::kSum).wait();
    EXPECT_EQ(sum.item<int>(), 6);
    const auto pair = world.group(world.rank() / 2);
    EXPECT_EQ(pair->size(), 2);
    EXPECT_EQ(pair->rank(), world.rank() % 2);
    const World smaller(pair);
    EXPECT_EQ(smaller.size(), 2);
    const Mesh mesh = world.mesh({{Axis::kData, 2}, {Axis::kTensor, 2}});
    EXPECT_EQ(mesh.position(Axis::kTensor), world.rank() % 2);
    EXPECT_THROW(world.mesh({{Axis::kData, 3}}), std::invalid_argument);
    EXPECT_THROW(world.mesh({{Axis::kData, -4}, {Axis::kTensor, -1}}), std::invalid_argument);
    World moved = std::move(world);
    moved.barrier();
    world = std::move(moved);
  });
}

TEST(Init, IsOneRankWithoutALauncher) {
  World world = init();
  EXPECT_EQ(world.size(), 1);
  world.barrier();
}

TEST(Init, DoesNotWaitForeverForRanksThatDoNotCome) {
  const TemporaryFolder folder;
  const InitOptions options{
      .init_method = "file://" + folder.path() + "/store", .rank = 0, .world_size = 2, .timeout = 300ms};
  EXPECT_THROW(init(options), CommError);
}

TEST(Init, RefusesOptionsThatContradictEachOther) {
  const auto refusal = [](const InitOptions& options) { return message_of<ConfigError>([&] { init(options); }); };
  EXPECT_THAT(refusal({.backend = "glo"}), HasSubstr("did you mean \"gloo\""));
  EXPECT_THAT(refusal({.init_method = "http://host:1"}), HasSubstr("tcp://host:port"));
  EXPECT_THAT(refusal({.init_method = "tcp://host:1", .rank = 1}), HasSubstr("world_size"));
  EXPECT_THAT(refusal({.init_method = "tcp://host:1", .rank = 2, .world_size = 2}), HasSubstr("rank 2"));
  EXPECT_THAT(refusal({.init_method = "env://"}), HasSubstr("RANK"));
  EXPECT_THAT(refusal({.timeout = 0ms}), HasSubstr("timeout"));
  const int no_communicator = 0;
  EXPECT_THAT(refusal({.backend = "gloo", .mpi_communicator = &no_communicator}), HasSubstr("gloo"));
}

TEST(ParameterServers, ServeTheRanksOfAWorld) {
  for (const int servers : {0, 1}) {
    run_worlds(2, [&](World& world) {
      ParameterServers service(world, {.servers = servers});
      auto& client = service.client();
      EXPECT_EQ(client.servers(), servers == 0 ? 2u : 1u);
      ps::Table table = client.create({.name = "w", .elements = 10, .rules = {"{name: add, factor: 0.5}"}});
      client.push(table, at::full({10}, 2.0), {}).wait();
      world.barrier();
      const at::Tensor values = at::zeros({10});
      client.pull(table, values).wait();
      EXPECT_TRUE(at::equal(values, at::full({10}, 2.0)));
    });
  }
  run_worlds(1, [](World& world) { EXPECT_THROW(ParameterServers(world, {.servers = 2}), std::invalid_argument); });
}

TEST(Library, HasAVersionAndItsOwnKernelsIfAsked) {
  EXPECT_STREQ(library_version(), PHALANX_VERSION);
  const std::string kernels = use_kernels();
  EXPECT_FALSE(kernels.empty());
  EXPECT_EQ(use_kernels(), kernels);
}

}  // namespace
}  // namespace phalanx
