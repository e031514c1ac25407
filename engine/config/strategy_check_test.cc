// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <string>

#include "engine/testing/run.h"

namespace phalanx {
namespace {

using testing::complaint;

TEST(Check, SingleTrainsOnOneRank) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: single"),
            "config: strategy: single trains on one rank, but launch.ranks is 2");
}

TEST(Check, StrategiesThatShareMemoryNeedABackendThatSharesIt) {
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: hogwild", "by_messages"),
            "config: strategy: hogwild needs ranks that share memory, but the ranks of backend by_messages do not; use "
            "backend: in_memory or inproc");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: {name: sharded, one_copy: true}", "by_messages"),
            "config: strategy.one_copy: needs ranks that share memory, but the ranks of backend by_messages do not; use"
            " backend: in_memory or inproc");
  EXPECT_EQ(
      complaint("launch: {ranks: 2}, strategy: {intra: {sharded: {one_copy: true}}}", "by_messages"),
      "config: strategy.intra.one_copy: needs ranks that share memory, but the ranks of backend by_messages do not;"
      " use backend: in_hosts or in_memory or inproc");
  EXPECT_EQ(
      complaint("launch: {ranks: 2, hosts: [a, b]}, strategy: hogwild"),
      "config: strategy: hogwild needs ranks that share memory, but launch.hosts names 2 hosts; use one of them, or"
      " another strategy");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: hogwild", "in_memory"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2, hosts: [a]}, strategy: hogwild"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: sharded", "by_messages"), "");
  EXPECT_EQ(complaint("launch: {ranks: 2}, strategy: {intra: {sharded: {one_copy: true}}}", "in_hosts"), "");
  EXPECT_EQ(complaint("launch: {ranks: 1}, strategy: hogwild", "by_messages"), "");
}

TEST(Check, GradientSumsNeedGradientsThatAreReduced) {
  EXPECT_EQ(complaint("train: {gradients: sum}"), "");
  EXPECT_EQ(complaint("train: {gradients: sum}, strategy: sharded"), "");
  EXPECT_EQ(complaint("train: {gradients: sum}, strategy: gossip"),
            "config: train.gradients: sum needs gradients that are reduced in every step, which gossip does not do;"
            " use one of all_reduce, auto, levels, overlapped, sharded, single, sync_ps");
  EXPECT_EQ(complaint("train: {gradients: sum}, strategy: {intra: sharded, inter: all_reduce}"), "");
  EXPECT_THAT(complaint("train: {gradients: sum}, strategy: {intra: sharded, inter: local_sgd}"),
              ::testing::HasSubstr("which levels does not do"));
  EXPECT_THAT(complaint("train: {gradients: sum}, launch: {threads: 1}, determinism: world_size_invariant"),
              ::testing::HasSubstr("train.gradients: must be mean"));
}

TEST(Check, RanksHaveNoOptimizerIfServersUpdateTheParameters) {
  const std::string servers = "strategy: {ssp: {server_optimizer: adam}}";
  EXPECT_EQ(complaint(servers), "");
  EXPECT_EQ(complaint("strategy: ssp, optimizer: adam"), "");
  EXPECT_THAT(complaint(servers + ", optimizer: adam"), ::testing::HasSubstr("optimizer: remove it"));
  EXPECT_THAT(complaint("strategy: dc_asgd, optimizer: {name: sgd, momentum: 0.9}"),
              ::testing::HasSubstr("optimizer: remove it"));
  EXPECT_THAT(complaint(servers + ", parameter_groups: [{match: bias}]"),
              ::testing::HasSubstr("parameter_groups: servers that"));
}

TEST(Check, Fp16RefusesCompressionThatWouldKeepAnOverflow) {
  const std::string refused =
      "config: train.precision: fp16 cannot be combined with compressed gradients, whose residual would keep an "
      "overflow forever; use bf16, or no compression";
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {name: overlapped, compression: bf16}"), refused);
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {intra: sharded, inter: {all_reduce: {compression: bf16}}}"),
            refused);
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {local_sgd: {warmup_steps: 9, warmup_compression: int8}}"),
            refused);
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: {local_sgd: {warmup_steps: 9, compression: int8}}"), "");
  EXPECT_EQ(complaint("train: {precision: fp16}, strategy: overlapped"), "");
  EXPECT_EQ(complaint("train: {precision: bf16}, strategy: {name: overlapped, compression: bf16}"), "");
}

}  // namespace
}  // namespace phalanx
