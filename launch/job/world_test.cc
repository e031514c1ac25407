// SPDX-License-Identifier: Apache-2.0
#include "launch/job/world.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/config/check.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/collectives/hierarchical/hierarchical_communicator.h"
#include "framework/collectives/selection/tuned_file.h"
#include "framework/testing/worlds.h"
#include "launch/rank/connect.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

ExperimentConfig config_of(const std::string& framework) {
  ExperimentConfig config;
  config::load_text(config, "model: mlp\nframework: " + framework, "t.yaml");
  check(config);
  return config;
}

CommunicatorPtr decorated(const CommunicatorPtr& world, const ExperimentConfig& config) {
  return decorate({{.backend = "inproc", .group = world}}, config, "").world;
}

std::string refusal_of(const std::string& framework) {
  try {
    config_of(framework);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(World, IsThatOfTheBackendByDefault) {
  testing::run_ranks("inproc", 2,
                     [](const CommunicatorPtr& world) { EXPECT_EQ(decorated(world, config_of("{}")), world); });
}

TEST(World, SelectsAndChecks) {
  const auto config =
      config_of("{check_collectives: true, selection: [{op: all_reduce, backend: inproc, algorithm: ring}]}");
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& plain) {
    const auto world = decorated(plain, config);
    at::Tensor tensor = at::ones({4});
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[0].item<float>(), 2);
    int sends = 0;
    for (const auto& record : plain->recorder().records()) sends += record.call.op == Op::kSend;
    EXPECT_GT(sends, 0) << "a ring is made of messages";
    EXPECT_THAT([&] { world->broadcast(tensor, world->rank()).wait(); },
                ThrowsMessage<CommError>(HasSubstr("rank 1 calls broadcast(root 1)")));
  });
}

TEST(World, WorksByTheLevelsOfTheConfig) {
  const auto config = config_of("{topology: {levels: [pair], keys: {pair: {ranks: 2}}}}");
  testing::run_ranks("inproc", 4, [&](const CommunicatorPtr& plain) {
    const auto world = decorated(plain, config);
    EXPECT_NE(std::dynamic_pointer_cast<HierarchicalCommunicator>(world), nullptr);
    at::Tensor tensor = at::ones({10'000});
    world->all_reduce(tensor, Reduction::kSum).wait();
    EXPECT_EQ(tensor[9'999].item<float>(), 4);
  });
}

// The file fits this topology. Its rules come after those of the config.
TEST(World, FollowsASelectionFile) {
  const std::string path = ::testing::TempDir() + "/world.json";
  testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& plain) {
    const auto topology = world_topology(*plain, "inproc");
    if (plain->rank() == 0) {
      save_tuned(path, {.topology = topology,
                        .table = SelectionTable{{.op = "all_reduce", .ranks = 2, .algorithm = "ring"}},
                        .measured = {}});
    }
    plain->barrier().wait();
    const auto world =
        decorated(plain, config_of("{selection: [{op: all_reduce, up_to: 16}], selection_file: " + path + "}"));
    const auto& table = dynamic_cast<SelectingCommunicator&>(*world).table();
    EXPECT_THAT(table.to_text(), HasSubstr("all_reduce  16 B   any    any    any     own      native\n"
                                           "all_reduce  any    2      any    any     own      ring\n"));
    EXPECT_THAT(
        [&] { decorate({{.backend = "shm", .group = plain}}, config_of("{selection_file: " + path + "}"), ""); },
        ThrowsMessage<ConfigError>(HasSubstr("backend inproc, here shm")));
  });
}

TEST(World, ListsTheBackendsThatRulesAdd) {
  ExperimentConfig config;
  config.backend = "inproc";
  EXPECT_THAT(selected_backends(config), IsEmpty());
  config.framework.selection = {{.op = "reduce", .backend = "mpi"},
                                {.op = "gather", .backend = "inproc"},
                                {.op = "scatter", .backend = "mpi"},
                                {.op = "broadcast"}};
  EXPECT_THAT(selected_backends(config), ElementsAre("mpi"));
}

TEST(World, ConfigsThatCannotBeFollowedAreRefusedBeforeAnythingRuns) {
  EXPECT_THAT(refusal_of("{selection: [{op: all_reduce, algorithm: rings}]}"),
              HasSubstr("t.yaml:2:53: framework.selection[0].algorithm: must be native, "));
  EXPECT_THAT(refusal_of("{selection: [{op: all_reduce}, {op: all_reduce, algorithm: ring}]}"),
              HasSubstr("config: framework.selection[1]: is never reached: [0], all_reduce -> native, "));
  EXPECT_THAT(refusal_of("{selection_file: no/such.json}"),
              HasSubstr("config: framework.selection_file: cannot read the selection file: no/such.json"));
}

}  // namespace
}  // namespace phalanx
