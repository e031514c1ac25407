// SPDX-License-Identifier: Apache-2.0
// Tests strategies with parameter servers on meshes. Each part of the model has its own tables; parameters that several
// of its ranks replicate are only in the tables of the first of these ranks. Linked with one backend at a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/experiment/config.h"
#include "engine/experiment/experiment.h"
#include "framework/base/error.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/texts.h"
#include "framework/ps/current_servers.h"
#include "framework/ps/testing/service.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/mesh_runs.h"
#include "tests/equivalence/training.h"

namespace phalanx::testing {
namespace {

using Case = MeshCase;

class SynchronousServers : public OnMesh {};

// gpt has a tied embedding, which the first and the last stage share.
INSTANTIATE_TEST_SUITE_P(
    Pipelines, SynchronousServers,
    ::testing::Values(Case{"gpt", 2, "pipe: 2", "sync_ps"}, Case{"mlp", 3, "pipe: 3", "sync_ps"},
                      Case{"gpt", 4, "data: 2, pipe: 2", "sync_ps"}, Case{"gpt", 6, "data: 3, pipe: 2", "sync_ps"},
                      Case{"gpt", 8, "data: 4, pipe: 2", "{intra: overlapped, inter: sync_ps, ranks_per_group: 2}"},
                      Case{"gpt", 8, "data: 4, pipe: 2",
                           "{intra: all_reduce, inter: sync_ps, ranks_per_group: 2, leaders: 1}"}));

// Layer norms are replicated on the ranks that divide the other layers.
INSTANTIATE_TEST_SUITE_P(
    Tensor, SynchronousServers,
    ::testing::Values(Case{"mlp", 2, "tensor: 2", "sync_ps"}, Case{"gpt", 4, "data: 2, tensor: 2", "sync_ps"},
                      Case{"llama", 4, "data: 2, tensor: 2, sequence_parallel: true", "sync_ps"},
                      Case{"gpt", 8, "data: 2, tensor: 2, pipe: 2", "sync_ps"},
                      Case{"gpt", 8, "data: 4, tensor: 2", "{intra: overlapped, inter: sync_ps, ranks_per_group: 2}"}));

INSTANTIATE_TEST_SUITE_P(ExpertAndContext, SynchronousServers,
                         ::testing::Values(Case{"moe", 2, "expert: 2", "sync_ps"},
                                           Case{"moe", 4, "data: 2, expert: 2", "sync_ps"},
                                           Case{"moe", 8, "data: 2, tensor: 2, expert: 2", "sync_ps"},
                                           Case{"gpt", 4, "data: 2, context: 2", "sync_ps"},
                                           Case{"moe", 4, "expert: 2, context: 2", "sync_ps"}));

TEST_P(SynchronousServers, TrainAsOneProcess) { expect_equals_one_rank({"seed=2"}); }

TEST_P(SynchronousServers, TrainAsOneProcessWithClippingAndAverages) {
  expect_equals_one_rank({"train.clip_norm=0.1", "train.ema_decay=0.9"});
}

constexpr const char* kServerAdamw = "{sync_ps: {server_optimizer: {name: adamw, lr: 0.003}}}";

TEST(ServerOptimizers, TrainAsOneProcessIfTheyUpdateParts) {
  const std::string strategy = std::string("strategy=") + kServerAdamw;
  expect_equals_one_rank("gpt", 4, {"mesh={data: 2, tensor: 2}", strategy}, {"seed=2"});
  expect_equals_one_rank("gpt", 2, {"mesh.tensor=2", strategy}, {"train.clip_norm=0.1"});
  expect_equals_one_rank("moe", 4, {"mesh={data: 2, expert: 2}", strategy}, {"seed=2"});
  expect_equals_one_rank("moe", 4, {"mesh={tensor: 2, expert: 2}", strategy}, {"seed=2"});
  expect_equals_one_rank("gpt", 4, {"mesh={data: 2, pipe: 2}", strategy}, {"seed=2"});
  expect_equals_one_rank("gpt", 2, {"mesh.pipe=2", strategy}, {"train.clip_norm=0.1"});
}

// With one worker for each table nothing depends on the order of arrival.
TEST(AsynchronousServers, TrainAReplicaOnSeveralRanksAsOnOneRank) {
  for (const std::string strategy :
       {"{downpour: {every: 3}}", "{downpour: {every: 4, delay: 2, prefetch: 2, staleness_power: 1}}",
        "{downpour: {every: 2, server_optimizer: {name: adam, lr: 0.003}}}", "{ssp: {staleness: 1}}",
        "{easgd: {every: 2}}", "{easgd: {every: 2, synchronous: true}}", "{dc_asgd: {lr: 0.05, lambda: 2}}"}) {
    for (const std::string kind : {"gpt", "mlp"}) {
      const Changes plain{"train.clip_norm=0.1", "train.ema_decay=0.9", "strategy=" + strategy};
      for (const std::string axis : {"pipe", "tensor"}) {
        expect_same(kind, 2, {"mesh." + axis + "=2", plain[0], plain[1], plain[2]}, 1, plain);
      }
    }
  }
}

// If ranks wait for each other's updates, the values that they read depend only on the sum of these. Updates of three
// replicas would make two copies of an embedding differ.
TEST(AsynchronousServers, ReplicasOnMeshesWaitForEachOtherLikeReplicasOnOneRank) {
  for (const std::string strategy : {"{ssp: {staleness: 0}}", "{easgd: {every: 2, synchronous: true}}"}) {
    for (const int replicas : {2, 3}) {
      const Changes plain{"train.clip_norm=0.1", "strategy=" + strategy};
      for (const std::string axis : {"pipe", "tensor"}) {
        const auto mesh = "mesh={data: " + std::to_string(replicas) + ", " + axis + ": 2}";
        expect_same("gpt", 2 * replicas, {mesh, plain[0], plain[1]}, replicas, plain);
      }
    }
  }
}

// Updates of experts come from the ranks that have the same experts, all other updates from all ranks.
TEST(AsynchronousServers, TrainExperts) {
  for (const std::string strategy : {"{downpour: {every: 2}}", "{easgd: {every: 2}}",
                                     "{ssp: {staleness: 1, server_optimizer: {name: adam, lr: 0.001}}}"}) {
    run_ranks(kBackend, 4, [&](const CommunicatorPtr& world) {
      const auto loss_after = [&](const std::string& steps) {
        const Changes changes{"mesh={data: 2, expert: 2}", "strategy=" + strategy, "train.max_steps=" + steps};
        const auto metrics = train(config_of("moe", changes), world, file_name("experts" + strategy + steps)).test;
        return std::ranges::find(metrics, "loss", &Metrics::value_type::first)->second;
      };
      EXPECT_LT(loss_after("20"), loss_after("1")) << strategy;
    });
  }
}

// Runs the same strategy on each mesh.
void expect_served_journey_as_alone(const std::string& kind, const std::string& strategy,
                                    const std::vector<std::pair<int, std::string>>& meshes,
                                    const std::string& strategy_alone) {
  std::vector<RunPart> legs;
  for (const auto& [ranks, mesh] : meshes) legs.push_back({ranks, {strategy, "mesh={" + mesh + "}"}});
  expect_resumed_equals_one_rank(kind, "served_" + strategy, legs, {strategy_alone});
}

// The center and the state of the servers' optimizers are saved by parameter, wherever the tables are.
TEST(ServedCheckpoints, ResumeOnEveryMesh) {
  for (const std::string kind : {"gpt", "mlp"}) {
    expect_served_journey_as_alone(kind, "strategy=sync_ps",
                                   {{1, "data: 1"}, {2, "pipe: 2"}, {4, "data: 2, tensor: 2"}, {4, "data: 2, pipe: 2"}},
                                   "strategy=single");
    const std::string servers_update = std::string("strategy=") + kServerAdamw;
    expect_served_journey_as_alone(kind, servers_update,
                                   {{2, "tensor: 2"}, {4, "data: 2, pipe: 2"}, {4, "data: 2, tensor: 2"}},
                                   "strategy=single");
    for (const std::string strategy : {"strategy={downpour: {every: 1}}", "strategy={easgd: {every: 5}}",
                                       "strategy={downpour: {every: 1, server_optimizer: {name: adam, lr: 0.003}}}"}) {
      expect_served_journey_as_alone(kind, strategy, {{2, "pipe: 2"}, {1, "data: 1"}, {2, "tensor: 2"}}, strategy);
    }
  }
}

TEST(ServedCheckpoints, ResumeWithAnyDivisionOfExperts) {
  for (const auto& strategy : {std::string("sync_ps"), std::string(kServerAdamw)}) {
    expect_served_journey_as_alone("moe", "strategy=" + strategy,
                                   {{2, "expert: 2"}, {4, "tensor: 2, expert: 2"}, {4, "expert: 4"}, {1, "data: 1"}},
                                   strategy == "sync_ps" ? "strategy=single" : "strategy=" + strategy);
  }
}

// Stages with a different cut have different parameters.
TEST(ServedCheckpoints, ResumeWithEveryCut) {
  const Changes both{std::string("strategy=") + kServerAdamw, "checkpoint.every_steps=5", "mesh.pipe=2"};
  run_ranks(kBackend, 2, [&](const CommunicatorPtr& world) {
    const auto on = [&](const std::string& cut, int steps, const std::string& resume) {
      auto changes = both;
      changes.insert(changes.end(), {"pipeline.cut=[" + cut + "]", "train.max_steps=" + std::to_string(steps),
                                     "checkpoint.resume=" + resume});
      return train(config_of("mlp", changes), world, "served_cut").folder;
    };
    on("fc2", 5, "none");
    const auto folder = on("fc3", 10, "auto");
    auto changes = both;
    changes.insert(changes.end(), {"train.max_steps=10"});
    const auto whole = train(config_of("mlp", changes), world, "served_cut_whole").folder;
    if (world->rank() == 0) {
      EXPECT_LT(relative_difference(folder, whole), kRounding);
    }
  });
}

/// Servers that rank 0 owns, for all ranks.
class Servers {
 public:
  Servers(int count, Communicator& world) {
    if (world.rank() == 0) service_.emplace(count, "unix");
    list_ = ps::ServerList{.servers = {}, .secret = ps::testing::kSecret, .run = "a run", .retry = Seconds(30)};
    for (int i = 0; i < count; ++i) {
      const auto address =
          world.rank() == 0 ? service_->servers()[static_cast<std::size_t>(i)]->addresses().at(0) : std::string();
      list_.servers.push_back({host_key(), {broadcast_text(address, world)}});
    }
  }

  const ps::ServerList& list() const { return list_; }

 private:
  std::optional<ps::testing::Service> service_;
  ps::ServerList list_;
};

// Each part of the model moves its own tables.
TEST(ServedMoves, DoNotChangeTheResult) {
  for (const auto& [ranks, changes] : std::vector<std::pair<int, Changes>>{
           {4, {"mesh={data: 2, pipe: 2}", "strategy=sync_ps"}},
           {4, {"mesh={data: 2, pipe: 2}", std::string("strategy=") + kServerAdamw}},
           {2, {"mesh.pipe=2", "strategy={downpour: {every: 3, server_optimizer: {name: adam, lr: 0.003}}}"}},
           {2, {"mesh.tensor=2", "strategy={easgd: {every: 2}}"}}}) {
    run_ranks(kBackend, ranks, [&](const CommunicatorPtr& world) {
      const Servers one(1, *world), two(2, *world);
      const auto current = std::make_shared<ps::CurrentServers>(one.list());
      const auto run = file_name("moves" + changes[0] + changes[1]);
      const auto moved = train(config_of("gpt", changes), world, run, [&](ExperimentContext& context) {
        context.servers = current;
        context.add_hooks = [&](Engine& engine) {
          engine.on(Event::kUpdate, [&](State& state) {
            if (state.step == 5) current->change(two.list());
            if (state.step == 10) current->change(one.list());
          });
        };
      });
      const auto stayed = train(config_of("gpt", changes), world, run + "_stayed");
      if (world->rank() == 0) {
        EXPECT_LT(relative_difference(moved.folder, stayed.folder), kRounding) << changes[1];
      }
      world->barrier().wait();
    });
  }
}

TEST(ServedErrors, NameWhatDoesNotFit) {
  expect_refused(2, "gpt", {"mesh.pipe=2", "pipeline={schedule: dualpipe, micro_batches: 4}", "strategy=sync_ps"},
                 "parameter servers have each parameter once, and all parameters of rank 1 of the pipeline "
                 "also belong to an earlier rank");
  expect_refused(4, "mlp",
                 {"mesh={pipe: 2, tensor: 2}", "pipeline.cut=[fc3]",
                  "plan=[{layers: fc1, style: column}, {layers: fc2, style: row}]", "strategy=sync_ps"},
                 "the other ranks would have nothing to update");
  const auto config =
      config_of("gpt", {"launch.ranks=2", "mesh.context=2", "strategy=downpour", "optimizer={name: sgd, lr: 0.1}"});
  try {
    check(config);
    FAIL() << "nothing was refused";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("use one that reduces gradients in every step"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace phalanx::testing
