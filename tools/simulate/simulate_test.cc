// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "tools/simulate/curves.h"
#include "tools/simulate/network.h"
#include "tools/simulate/step.h"
#include "tools/simulate/validation.h"

namespace phalanx::simulate {
namespace {

using ::testing::HasSubstr;

// 4 hosts of 4 ranks, without latency: 100 bytes per second inside a host, 10 bytes per second between hosts.
ClusterConfig cluster() {
  ClusterConfig cluster;
  cluster.hosts = cluster.ranks_per_host = 4;
  cluster.host_bandwidth = 100;
  cluster.nic_bandwidth = 10;
  cluster.host_latency = cluster.nic_latency = 0;
  return cluster;
}

TEST(Network, MovesARingOverItsSlowestLink) {
  const Network network(cluster());
  EXPECT_DOUBLE_EQ(network.all_reduce({4, 1}, 400, "ring"), 2 * 3 * 100 / 100.0);
  EXPECT_DOUBLE_EQ(network.all_reduce({16, 1}, 1600, "ring"), 2 * 15 * 100 / 10.0);
  EXPECT_DOUBLE_EQ(network.half({4, 1}, 400), 3.0);
  EXPECT_EQ(network.all_reduce({1, 1}, 400, "best"), 0);
}

TEST(Network, SharesTheNicAmongGroups) {
  const Network network(cluster());
  // 4 groups of 4 ranks, each with one rank on every host.
  EXPECT_DOUBLE_EQ(network.all_reduce({4, 4}, 400, "ring"), 2 * 3 * 100 / 2.5);
  auto oversubscribed = cluster();
  oversubscribed.oversubscription = 2;
  EXPECT_DOUBLE_EQ(Network(oversubscribed).all_reduce({4, 4}, 400, "ring"), 2 * 3 * 100 / 1.25);
}

TEST(Network, ReducesInsideHostsFirst) {
  const Network network(cluster());
  const double inside = 2 * 3 * 400 / 100.0, between = 2 * 3 * 100 / 2.5;
  EXPECT_DOUBLE_EQ(network.all_reduce({16, 1}, 1600, "hierarchical"), inside + between);
}

TEST(Network, TakesATreeWhereLatencyCounts) {
  auto slow = cluster();
  slow.host_latency = slow.nic_latency = 1;
  const Network network(slow);
  EXPECT_DOUBLE_EQ(network.all_reduce({16, 1}, 0, "ring"), 30);
  EXPECT_DOUBLE_EQ(network.all_reduce({16, 1}, 0, "tree"), 8);
  EXPECT_DOUBLE_EQ(network.all_reduce({16, 1}, 0, "best"), 8);
}

TEST(Network, ExchangesWithEachRank) {
  const Network network(cluster());
  EXPECT_DOUBLE_EQ(network.all_to_all({4, 1}, 400), 3.0);
  EXPECT_DOUBLE_EQ(network.all_to_all({16, 1}, 1600), 3.0 + 12 * 100 / 2.5);
  EXPECT_DOUBLE_EQ(network.send({4, 1}, 400), 4.0);
}

// One second per sample, 40 bytes of gradients, no overlap.
Scenario scenario() {
  Scenario scenario;
  scenario.cluster = cluster();
  scenario.cluster.hosts = 1;
  scenario.model.parameters = 100;
  scenario.model.seconds_per_sample = 1;
  scenario.model.layers = 4;
  scenario.model.width = 8;
  scenario.model.sequence = 8;
  scenario.model.activation_element = 4;
  scenario.train.overlap = false;
  return scenario;
}

TEST(Step, AddsGradientsToCompute) {
  const Step step = simulate(scenario());
  EXPECT_EQ(step.mesh.data, 4);
  EXPECT_DOUBLE_EQ(step.compute, 1);
  EXPECT_DOUBLE_EQ(step.gradients, 2 * 3 * 100 / 100.0);
  EXPECT_DOUBLE_EQ(step.seconds, 7);
  EXPECT_DOUBLE_EQ(step.samples_per_second(), 4.0 / 7);
  EXPECT_DOUBLE_EQ(scaling_efficiency(scenario()), 1.0 / 7);
}

TEST(Step, HidesAllButTheLastBucketUnderBackward) {
  auto one = scenario();
  one.train.overlap = true;
  one.train.bucket_bytes = 100;
  EXPECT_DOUBLE_EQ(simulate(one).gradients, 6 - 2.0 / 3);
  one.train.samples_per_replica = 90;
  EXPECT_DOUBLE_EQ(simulate(one).gradients, 6 / 4.0);
}

TEST(Step, WaitsForThePipeToFill) {
  auto one = scenario();
  one.mesh.pipe = 4;
  one.train.samples_per_replica = 12;
  one.train.micro_batch_size = 1;
  const Step step = simulate(one);
  EXPECT_DOUBLE_EQ(step.compute, 12 / 4.0);
  EXPECT_GT(step.layers, 0);
  EXPECT_DOUBLE_EQ(step.bubble, (step.compute + step.layers) * 3 / 12);
  EXPECT_EQ(step.gradients, 0);
}

TEST(Step, ReducesActivationsOfTensorParallelLayers) {
  auto one = scenario();
  one.mesh.tensor = 4;
  const Step step = simulate(one);
  EXPECT_DOUBLE_EQ(step.compute, 1 / 4.0);
  EXPECT_DOUBLE_EQ(step.layers, 4 * 4 * (2 * 3 * (8 * 8 * 4 / 4.0) / 100));
  one.train.recompute = true;
  EXPECT_DOUBLE_EQ(simulate(one).compute, 1 / 3.0);
  EXPECT_DOUBLE_EQ(simulate(one).layers, step.layers * 6 / 4);
}

TEST(Step, SendsTokensToExperts) {
  auto one = scenario();
  one.mesh.expert = 4;
  one.model.expert_parameters = 400;
  EXPECT_DOUBLE_EQ(simulate(one).layers, 4 * 4 * (3 * (8 * 8 * 4 / 4.0) / 100));
  one.model.experts_per_token = 2;
  EXPECT_DOUBLE_EQ(simulate(one).layers, 2 * 4 * 4 * (3 * (8 * 8 * 4 / 4.0) / 100));
}

TEST(Step, ShardsWhatZeroShards) {
  auto one = scenario();
  one.model.activation_bytes = 1;
  const double bytes[] = {100 * (4 + 4 + 8) + 1, 100 * (4 + 4 + 2) + 1, 100 * (4 + 1 + 2) + 1, 100 * 4 + 1};
  for (int stage = 0; stage <= 3; ++stage) {
    one.train.zero = stage;
    EXPECT_DOUBLE_EQ(simulate(one).memory, bytes[stage]) << stage;
    EXPECT_DOUBLE_EQ(simulate(one).gradients, stage == 3 ? 9 : 6) << stage;
  }
}

TEST(Step, SharesCores) {
  auto one = scenario();
  one.cluster.cores_per_host = 2;
  EXPECT_DOUBLE_EQ(simulate(one).compute, 2);
  one.cluster.cores_per_host = 8;
  EXPECT_DOUBLE_EQ(simulate(one).compute, 1);
}

TEST(Step, CountsFlopsIfNoTimeIsGiven) {
  auto one = scenario();
  one.model.seconds_per_sample = 0;
  one.cluster.flops = 1000;
  one.cluster.efficiency = 0.5;
  EXPECT_DOUBLE_EQ(simulate(one).compute, (6 * 100 * 8 + 12 * 4 * 8 * 64) / 500.0);
  one.model.flops_per_sample = 1500;
  EXPECT_DOUBLE_EQ(simulate(one).compute, 3);
}

TEST(Step, RefusesWhatDoesNotFit) {
  const auto complaint = [](const std::vector<std::string>& changes) -> std::string {
    Scenario one = scenario();
    try {
      config::load_text(one, config::dump(one), "test", changes);
      simulate(one);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint({}), "");
  EXPECT_THAT(complaint({"mesh.tensor=3"}), HasSubstr("mesh: "));
  EXPECT_THAT(complaint({"mesh.pipe=4", "model.layers=3"}), HasSubstr("mesh.pipe"));
  EXPECT_THAT(complaint({"mesh.tensor=4", "model.width=6"}), HasSubstr("mesh.tensor"));
  EXPECT_THAT(complaint({"mesh.tensor=4", "model.width=0"}), HasSubstr("model.width"));
  EXPECT_THAT(complaint({"mesh.context=4", "model.sequence=6"}), HasSubstr("mesh.context"));
  EXPECT_THAT(complaint({"mesh.expert=4"}), HasSubstr("model.expert_parameters"));
  EXPECT_THAT(complaint({"train.global_batch_size=6"}), HasSubstr("train.global_batch_size"));
  EXPECT_THAT(complaint({"train.samples_per_replica=3", "train.micro_batch_size=2"}),
              HasSubstr("train.micro_batch_size"));
}

TEST(Search, FindsTheFastestMeshThatFits) {
  auto one = scenario();
  one.train.global_batch_size = 4;
  one.model.activation_bytes = 4;
  const auto all = search(one);
  ASSERT_GT(all.size(), 3u);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_GE(all[i - 1].samples_per_second(), all[i].samples_per_second());
  }
  one.cluster.memory = 1000;  // less than 100 parameters need with 16 bytes each
  for (const auto& step : search(one)) EXPECT_GT(step.mesh.model(), 1);
  one.cluster.memory = 10;
  EXPECT_THROW(search(one), ConfigError);
}

TEST(Scaling, GoesUpToAllHosts) {
  auto one = scenario();
  one.cluster.hosts = 8;
  const auto points = scaling(one);
  ASSERT_EQ(points.size(), 4u);
  EXPECT_EQ(points.back().ranks, 32);
  EXPECT_DOUBLE_EQ(points.front().samples_per_second, points.front().ideal);
  EXPECT_LT(points.back().samples_per_second, points.back().ideal);
  const std::string svg = draw_scaling("a < b", points);
  EXPECT_THAT(svg, HasSubstr("a &lt; b"));
  EXPECT_THAT(svg, HasSubstr("<polyline"));
  EXPECT_THROW(draw_scaling("", {points[0]}), ConfigError);
}

// docs/planning.md shows these errors.
void expect_within(const std::string& file, double most) {
  int predicted = 0;
  for (const auto& row : validate("tools/simulate/published/" + file)) {
    EXPECT_LE(std::abs(row.error()), row.calibrates ? 1e-6 : most) << row.name;
    predicted += row.calibrates ? 0 : 1;
  }
  EXPECT_GT(predicted, 0);
}

TEST(Published, HorovodOnUpTo512Gpus) { expect_within("horovod.yaml", 0.1); }
TEST(Published, MegatronOnUpTo3072Gpus) { expect_within("megatron.yaml", 0.1); }
TEST(Published, TorchTitanOn128Gpus) { expect_within("torchtitan.yaml", 0.03); }

TEST(Scenarios, ExampleLoads) {
  Scenario one;
  config::load(one, "tools/simulate/gpt_cluster.yaml");
  EXPECT_TRUE(simulate(one).fits);
  EXPECT_FALSE(search(one).empty());
}

}  // namespace
}  // namespace phalanx::simulate
