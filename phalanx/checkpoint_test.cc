// SPDX-License-Identifier: Apache-2.0
#include "phalanx/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "launch/temporary_folder.h"
#include "phalanx/testing/worlds.h"

namespace phalanx {
namespace {

using testing::equal_on_all_ranks;
using testing::expect_near;
using ::testing::HasSubstr;
using testing::loss_of;
using testing::make_sgd;
using testing::message_of;
using testing::Net;
using testing::own_rows;
using testing::run_worlds;
using testing::values_of;

TEST(Checkpoint, AllRanksGetTheModuleOfTheFileInTheirBuckets) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/saved";
  std::vector<at::Tensor> saved;
  run_worlds(2, [&](World& world) {
    Net net;
    net.set_values(world.rank());
    if (world.rank() == 0) saved = values_of(net);
    save(net, path, world);
  });
  run_worlds(3, [&](World& world) {
    auto net = std::make_shared<Net>();
    DistributedDataParallel ddp(net, world);
    FusedOptimizer optimizer(ddp, "sgd", {.keys = {{"lr", "0.1"}}});
    load(net, path, world);
    expect_near(values_of(*net), saved, 0);
    loss_of(*net, own_rows(0, world)).backward();
    optimizer.step();  // throws if the values have left the buckets
    EXPECT_FALSE(at::equal(net->first->weight, saved[0]));
  });
  auto plain = std::make_shared<Net>();
  plain->set_values(5);
  torch::load(plain, path);
  expect_near(values_of(*plain), saved, 0);
}

TEST(Checkpoint, AFileOfAnotherDtypeIsConvertedInPlace) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/saved";
  run_worlds(2, [&](World& world) {
    Net saved;
    saved.set_values(5);
    const auto values = values_of(saved);
    saved.to(at::kDouble);
    save(saved, path, world);
    Net net;
    DistributedDataParallel ddp(net, world);
    load(net, path, world);
    expect_near(values_of(net), values, 0);
    loss_of(net, own_rows(0, world)).backward();
    EXPECT_TRUE(equal_on_all_ranks({net.first->weight.grad()}, world));
  });
}

TEST(Checkpoint, ErrorsReachAllRanksAndChangeNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/saved";
  std::ofstream(path) << "no archive";
  run_worlds(2, [&](World& world) {
    Net net;
    const auto before = values_of(net);
    EXPECT_THAT(message_of<DataError>([&] { load(net, path + ".absent", world); }), HasSubstr(path + ".absent"));
    EXPECT_THAT(message_of<DataError>([&] { load(net, path, world); }), HasSubstr(path));
    EXPECT_THAT(message_of<DataError>([&] { save(net, "/nowhere/at/all", world); }), HasSubstr("/nowhere/at/all"));
    torch::nn::Linear other(3, 7), smaller(3, 6);
    save(other, path + ".other", world);
    EXPECT_THAT(message_of<DataError>([&] { load(smaller, path + ".other", world); }), HasSubstr("weight is [6, 3]"));
    EXPECT_THAT(message_of<DataError>([&] { load(net, path + ".other", world); }),
                HasSubstr("first is not in the file"));
    expect_near(values_of(net), before, 0);
  });
}

TEST(Checkpoint, TrainingGoesOnWithTheOptimizerOfTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/saved";
  run_worlds(2, [&](World& world) {
    Net net;
    const DistributedDataParallel ddp(net, world);
    auto optimizer = make_sgd(net.parameters());
    const auto take_step = [&](Net& one, torch::optim::Optimizer& with, int step) {
      with.zero_grad();
      loss_of(one, own_rows(step, world)).backward();
      with.step();
    };
    for (int step = 0; step < 2; ++step) take_step(net, *optimizer, step);
    save(net, path, world);
    save(*optimizer, path + ".optimizer", world);
    take_step(net, *optimizer, 2);

    Net resumed;
    const DistributedDataParallel resumed_ddp(resumed, world);
    auto resumed_optimizer = make_sgd(resumed.parameters());
    load(resumed, path, world);
    load(*resumed_optimizer, path + ".optimizer", world);
    take_step(resumed, *resumed_optimizer, 2);
    expect_near(values_of(resumed), values_of(net), 0);
  });
}

// Trains two steps on some ranks and saves, or loads and trains the third.
std::vector<at::Tensor> train_sharded(int ranks, const std::string& path, const std::string& strategy, bool resume) {
  std::vector<at::Tensor> values;
  run_worlds(ranks, [&](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.strategy = strategy, .bucket_bytes = resume ? 100 : 1000});
    FusedOptimizer optimizer(ddp, "adam", {.keys = {{"lr", "0.01"}}});
    if (resume) {
      load(net, path, world);
      load(optimizer, path + ".optimizer", world);
      EXPECT_EQ(optimizer.steps(), 2);
    }
    for (int step = resume ? 2 : 0; step < (resume ? 3 : 2); ++step) {
      loss_of(net, own_rows(step, world)).backward();
      optimizer.step();
    }
    if (!resume) {
      save(net, path, world);
      save(optimizer, path + ".optimizer", world);
      loss_of(net, own_rows(2, world)).backward();
      optimizer.step();
    }
    if (world.rank() == 0) values = values_of(net);
  });
  return values;
}

TEST(Checkpoint, ShardedStateFitsOtherRanksStrategiesAndBuckets) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/saved";
  const auto expected = train_sharded(3, path, "sharded", false);
  EXPECT_TRUE(std::filesystem::exists(path + ".optimizer.2"));
  expect_near(train_sharded(3, path, "sharded", true), expected);
  expect_near(train_sharded(2, path, "sharded", true), expected);
  expect_near(train_sharded(1, path, "auto", true), expected);
  train_sharded(2, path, "all_reduce", false);
  expect_near(train_sharded(2, path, "sharded", true), expected);
}

TEST(Checkpoint, SaysWhichStateIsMissing) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/saved";
  run_worlds(1, [&](World& world) {
    torch::nn::Linear layer(2, 2);
    Net net;
    DistributedDataParallel of_layer(layer, world), of_net(net, world);
    FusedOptimizer first(of_layer, "adam"), second(of_net, "adam");
    save(first, path, world);
    EXPECT_THAT(message_of<DataError>([&] { load(second, path, world); }), HasSubstr("exp_avg of second.bias"));
  });
}

}  // namespace
}  // namespace phalanx
