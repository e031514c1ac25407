// SPDX-License-Identifier: Apache-2.0
#include "phalanx/optimizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>

#include <map>
#include <utility>

#include "phalanx/testing/worlds.h"

namespace phalanx {
namespace {

using testing::equal_on_all_ranks;
using testing::expect_near;
using ::testing::HasSubstr;
using testing::kRows;
using testing::loss_of;
using testing::make_sgd;
using testing::message_of;
using testing::Net;
using testing::own_rows;
using testing::rows_of;
using testing::run_worlds;
using testing::values_of;

constexpr int kUpdates = 4;

const FusedOptimizerOptions kSgd{.keys = {{"lr", "0.1"}, {"momentum", "0.9"}}};

void take_steps(Net& net, FusedOptimizer& optimizer, World& world, int first, int count) {
  for (int step = first; step < first + count; ++step) {
    loss_of(net, own_rows(step, world)).backward();
    optimizer.step();
  }
}

std::vector<at::Tensor> train_fused(World& world, const DistributedDataParallelOptions& options,
                                    const std::string& name, const FusedOptimizerOptions& optimizer_options) {
  Net net;
  DistributedDataParallel ddp(net, world, options);
  FusedOptimizer optimizer(ddp, name, optimizer_options);
  take_steps(net, optimizer, world, 0, kUpdates);
  EXPECT_EQ(optimizer.steps(), kUpdates);
  EXPECT_TRUE(equal_on_all_ranks(values_of(net), world));
  return values_of(net);
}

TEST(FusedOptimizer, EqualsOneProcessWithTorchsOptimizer) {
  const auto expected = testing::trained_by_one_process(kUpdates, make_sgd);
  for (const int ranks : {1, 2, 3}) {
    run_worlds(ranks, [&](World& world) { expect_near(train_fused(world, {}, "sgd", kSgd), expected); });
  }
  const auto with_adam = testing::trained_by_one_process(kUpdates, [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::AdamW>(std::move(parameters),
                                                 torch::optim::AdamWOptions(0.01).weight_decay(0.1));
  });
  run_worlds(2, [&](World& world) {
    expect_near(train_fused(world, {}, "adamw", {.keys = {{"lr", "0.01"}, {"weight_decay", "0.1"}}}), with_adam);
  });
}

TEST(FusedOptimizer, ShardsItsUpdatesInEachStage) {
  const auto expected = testing::trained_by_one_process(kUpdates, make_sgd);
  const std::vector<std::map<std::string, std::string>> kinds{{}, {{"one_copy", "true"}}, {{"stage", "2"}}};
  for (const auto& kind : kinds) {
    for (const int ranks : {1, 3}) {
      run_worlds(ranks, [&](World& world) {
        expect_near(
            train_fused(world, {.strategy = "sharded", .strategy_options = kind, .bucket_bytes = 200}, "sgd", kSgd),
            expected);
      });
    }
  }
}

TEST(FusedOptimizer, ShardsBetweenParametersForOptimizersOfWholeParameters) {
  std::vector<at::Tensor> alone;
  run_worlds(1, [&](World& world) { alone = train_fused(world, {}, "lamb", {.keys = {{"lr", "0.01"}}}); });
  run_worlds(2, [&](World& world) {
    expect_near(train_fused(world, {.strategy = "sharded"}, "lamb", {.keys = {{"lr", "0.01"}}}), alone);
  });
}

TEST(FusedOptimizer, ClipsTheNormOfAllShards) {
  constexpr double kLimit = 0.05;
  Net net;
  const auto optimizer = make_sgd(net.parameters());
  double norm = 0;
  for (int step = 0; step < kUpdates; ++step) {
    optimizer->zero_grad();
    loss_of(net, rows_of(step, 0, kRows)).backward();
    norm = torch::nn::utils::clip_grad_norm_(net.parameters(), kLimit);
    optimizer->step();
  }
  for (const char* strategy : {"all_reduce", "sharded"}) {
    run_worlds(2, [&](World& world) {
      Net own;
      DistributedDataParallel ddp(own, world, {.strategy = strategy});
      FusedOptimizer fused(ddp, "sgd", {.keys = kSgd.keys, .clip_norm = kLimit});
      take_steps(own, fused, world, 0, kUpdates);
      EXPECT_NEAR(fused.gradient_norm(), norm, 1e-4);
      expect_near(values_of(own), values_of(net));
    });
  }
}

TEST(FusedOptimizer, AccumulatesShardedGradients) {
  const auto expected = testing::trained_by_one_process(kUpdates, make_sgd);
  run_worlds(2, [&](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.strategy = "sharded"});
    FusedOptimizer optimizer(ddp, "sgd", kSgd);
    for (int step = 0; step < kUpdates; ++step) {
      const auto halves = own_rows(step, world).chunk(2);
      {
        const auto scope = ddp.no_sync();
        (loss_of(net, halves[0]) / 2).backward();
      }
      (loss_of(net, halves[1]) / 2).backward();
      optimizer.step();
    }
    expect_near(values_of(net), expected);
  });
}

TEST(FusedOptimizer, TakesTheStepsOfOtherRanksInJoin) {
  for (const char* strategy : {"all_reduce", "sharded"}) {
    std::vector<at::Tensor> first;  // of rank 0
    run_worlds(3, [&](World& world) {
      Net net;
      DistributedDataParallel ddp(net, world, {.strategy = strategy, .uneven_inputs = true});
      FusedOptimizer optimizer(ddp, "sgd", kSgd);
      take_steps(net, optimizer, world, 0, world.rank() + 1);
      EXPECT_EQ(ddp.join(), 2);
      EXPECT_EQ(optimizer.steps(), 3) << "state is the same on all ranks";
      EXPECT_TRUE(equal_on_all_ranks(values_of(net), world));
      take_steps(net, optimizer, world, 3, 1);
      EXPECT_TRUE(equal_on_all_ranks(values_of(net), world));
    });
  }
}

TEST(FusedOptimizer, AveragesItsStateWithLocalSgd) {
  run_worlds(2, [](World& world) {
    Net net;
    DistributedDataParallel ddp(
        net, world, {.strategy = "local_sgd", .strategy_options = {{"every", "2"}, {"momentum", "average"}}});
    FusedOptimizer optimizer(ddp, "sgd", kSgd);
    take_steps(net, optimizer, world, 0, 1);
    EXPECT_FALSE(equal_on_all_ranks(values_of(net), world));
    take_steps(net, optimizer, world, 1, 1);
    EXPECT_TRUE(equal_on_all_ranks(values_of(net), world));
  });
}

TEST(FusedOptimizer, SkipsParametersThatNoRankUses) {
  run_worlds(2, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.find_unused_parameters = true});
    FusedOptimizer optimizer(ddp, "sgd", {.keys = {{"lr", "0.1"}, {"weight_decay", "0.5"}}});
    const auto before = values_of(net);
    net.first(own_rows(0, world)).sum().backward();
    optimizer.step();
    EXPECT_FALSE(at::equal(net.first->weight, before[0]));
    EXPECT_TRUE(at::equal(net.second->weight, before[2]));
  });
}

TEST(FusedOptimizer, ChangesItsLearningRate) {
  run_worlds(1, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world);
    FusedOptimizer optimizer(ddp, "sgd", {.keys = {{"lr", "0.5"}}});
    EXPECT_EQ(optimizer.learning_rate(), 0.5);
    optimizer.set_learning_rate(0);
    const auto before = values_of(net);
    take_steps(net, optimizer, world, 0, 1);
    expect_near(values_of(net), before, 0);
    EXPECT_TRUE(at::equal(net.first->weight.grad(), at::zeros_like(net.first->weight)));
  });
}

TEST(FusedOptimizer, RefusesWhatDoesNotFit) {
  run_worlds(2, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.strategy = "sharded"});
    EXPECT_THAT(message_of<Error>([&] { loss_of(net, own_rows(0, world)).backward(); }), HasSubstr("FusedOptimizer"));
    const auto refusal = [&](const std::string& name, const FusedOptimizerOptions& options) {
      return message_of<ConfigError>([&] { FusedOptimizer(ddp, name, options); });
    };
    EXPECT_THAT(refusal("adan", {}), HasSubstr("adam"));
    EXPECT_THAT(refusal("sgd", {.keys = {{"lr", "-1"}}}), HasSubstr("lr"));
    EXPECT_THAT(refusal("sgd", {.keys = {{"rate", "1"}}}), HasSubstr("rate"));
    EXPECT_THAT(refusal("sgd", {.clip_norm = -1}), HasSubstr("clip_norm"));
    {
      const FusedOptimizer first(ddp, "sgd", kSgd);
    }
    const FusedOptimizer second(ddp, "sgd", kSgd);
    EXPECT_THAT(refusal("sgd", kSgd), HasSubstr("has one already"));
  });
}

TEST(FusedOptimizer, NoSyncIsRefusedIfGradientsAreFreed) {
  run_worlds(2, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.strategy = "sharded", .strategy_options = {{"stage", "2"}}});
    EXPECT_THAT(message_of<ConfigError>([&] { const auto scope = ddp.no_sync(); }), HasSubstr("stage 1"));
  });
}

TEST(BroadcastOptimizerState, CopiesStateAndSettingsOfItsRoot) {
  run_worlds(2, [](World& world) {
    Net net;
    torch::optim::Adam optimizer(net.parameters(), torch::optim::AdamOptions(world.rank() == 1 ? 0.25 : 0.5));
    if (world.rank() == 1) {
      loss_of(net, own_rows(0, world)).backward();
      optimizer.step();
    }
    broadcast_optimizer_state(optimizer, world, 1);
    EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.25);
    const auto& state = static_cast<const torch::optim::AdamParamState&>(
        *optimizer.state().at(net.first->weight.unsafeGetTensorImpl()));
    EXPECT_EQ(state.step(), 1);
    EXPECT_TRUE(equal_on_all_ranks({state.exp_avg()}, world));
  });
}

}  // namespace
}  // namespace phalanx
