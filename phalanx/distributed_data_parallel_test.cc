// SPDX-License-Identifier: Apache-2.0
#include "phalanx/distributed_data_parallel.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>

#include <optional>
#include <set>
#include <utility>

#include "phalanx/testing/worlds.h"

namespace phalanx {
namespace {

using testing::equal_on_all_ranks;
using testing::expect_near;
using testing::kRows;
using testing::loss_of;
using testing::make_sgd;
using testing::Net;
using testing::own_rows;
using testing::rows_of;
using testing::run_worlds;
using testing::values_of;
using Options = DistributedDataParallelOptions;

constexpr int kSteps = 4;

// Trains as a program would, and returns the values.
std::vector<at::Tensor> train(World& world, const Options& options) {
  Net net;
  if (world.rank() > 0) net.set_values(world.rank());
  DistributedDataParallel ddp(net, world, options);
  const auto optimizer = make_sgd(net.parameters());
  for (int step = 0; step < kSteps; ++step) {
    optimizer->zero_grad();
    loss_of(net, own_rows(step, world)).backward();
    optimizer->step();
    ddp.after_step();
  }
  ddp.finish();
  EXPECT_TRUE(equal_on_all_ranks(values_of(net), world));
  return values_of(net);
}

TEST(DistributedDataParallel, EqualsOneProcessOnAnyNumberOfRanks) {
  const auto expected = testing::trained_by_one_process(kSteps, make_sgd);
  for (const int ranks : {1, 2, 3}) {
    run_worlds(ranks, [&](World& world) { expect_near(train(world, {}), expected); });
  }
}

TEST(DistributedDataParallel, EqualsOneProcessWithEachStrategyThatReplicates) {
  const auto expected = testing::trained_by_one_process(kSteps, make_sgd);
  for (const char* strategy : {"all_reduce", "overlapped"}) {
    for (const std::int64_t bucket_bytes : {0, 100}) {
      run_worlds(3, [&](World& world) {
        expect_near(train(world, {.strategy = strategy, .bucket_bytes = bucket_bytes}), expected);
      });
    }
  }
}

TEST(DistributedDataParallel, TakesAModuleBehindAnyPointer) {
  run_worlds(2, [](World& world) {
    torch::nn::Sequential holder(torch::nn::Linear(2, 2));
    const DistributedDataParallel of_holder(holder, world);
    DistributedDataParallel of_shared(std::make_shared<Net>(), world);
    EXPECT_EQ(of_shared.strategy(), "all_reduce");
    const DistributedDataParallel moved = std::move(of_shared);
    EXPECT_EQ(moved.strategy(), "all_reduce");
  });
}

TEST(DistributedDataParallel, CompressionStaysNearTheExactResult) {
  const auto expected = testing::trained_by_one_process(kSteps, make_sgd);
  for (const char* strategy : {"all_reduce", "overlapped"}) {
    run_worlds(2, [&](World& world) {
      expect_near(train(world, {.strategy = strategy, .compression = "fp16"}), expected, 1e-2);
    });
  }
}

// Returns true if the grads of all parameters lie in one piece of memory.
bool in_one_bucket(const Net& net) {
  std::set<const void*> storages;
  for (const auto& parameter : net.parameters()) storages.insert(parameter.grad().storage().data());
  return storages.size() == 1;
}

TEST(DistributedDataParallel, GradientsAreInTheirBucketsHoweverTheyAreReset) {
  for (const char* strategy : {"all_reduce", "overlapped"}) {
    run_worlds(2, [&](World& world) {
      Net net;
      const DistributedDataParallel ddp(net, world, {.strategy = strategy});
      EXPECT_TRUE(in_one_bucket(net)) << "before the first backward";
      torch::optim::SGD optimizer(net.parameters(), 0.1);
      std::optional<std::vector<at::Tensor>> expected;
      const std::vector<std::function<void()>> resets{[&] { optimizer.zero_grad(true); },
                                                      [&] { optimizer.zero_grad(false); }, [&] { net.zero_grad(); },
                                                      [&] {
                                                        for (auto& parameter : net.parameters())
                                                          parameter.mutable_grad() = at::zeros_like(parameter);
                                                      }};
      for (const auto& reset : resets) {
        reset();
        loss_of(net, own_rows(0, world)).backward();
        EXPECT_TRUE(in_one_bucket(net));
        std::vector<at::Tensor> gradients;
        for (const auto& parameter : net.parameters()) gradients.push_back(parameter.grad().clone());
        if (expected) expect_near(gradients, *expected, 1e-6);
        expected = gradients;
      }
    });
  }
}

TEST(DistributedDataParallel, TwoBackwardsWithoutResetAddUp) {
  run_worlds(2, [](World& world) {
    Net net;
    const DistributedDataParallel ddp(net, world, {.strategy = "overlapped"});
    loss_of(net, own_rows(0, world)).backward();
    const at::Tensor once = net.first->weight.grad().clone();
    loss_of(net, own_rows(0, world)).backward();
    EXPECT_TRUE(at::allclose(net.first->weight.grad(), 2 * once));
  });
}

TEST(DistributedDataParallel, AccumulationEqualsOneProcess) {
  const auto expected = testing::trained_by_one_process(kSteps, make_sgd);
  for (const char* strategy : {"all_reduce", "overlapped"}) {
    run_worlds(2, [&](World& world) {
      Net net;
      DistributedDataParallel ddp(net, world, {.strategy = strategy, .bucket_bytes = 100});
      const auto optimizer = make_sgd(net.parameters());
      for (int step = 0; step < kSteps; ++step) {
        optimizer->zero_grad();
        const auto halves = own_rows(step, world).chunk(2);
        {
          const auto scope = ddp.no_sync();
          (loss_of(net, halves[0]) / 2).backward();
        }
        (loss_of(net, halves[1]) / 2).backward();
        optimizer->step();
      }
      expect_near(values_of(net), expected);
    });
  }
}

TEST(DistributedDataParallel, GradientsStayOnTheirRankWithoutSync) {
  run_worlds(2, [](World& world) {
    Net net, alone;
    DistributedDataParallel ddp(net, world);
    loss_of(alone, own_rows(0, world)).backward();
    const auto outer = ddp.no_sync();
    {
      const auto inner = ddp.no_sync();
    }
    loss_of(net, own_rows(0, world)).backward();
    EXPECT_TRUE(at::allclose(net.first->weight.grad(), alone.first->weight.grad()));
  });
}

// A module of which each forward uses the branches that it is told to.
struct Branches : torch::nn::Module {
  Branches() {
    for (const char* name : {"a", "b", "c"}) all.push_back(register_parameter(name, at::ones({2})));
  }
  at::Tensor forward(const std::vector<int>& used) {
    at::Tensor sum = at::zeros({});
    for (const int i : used) sum = sum + (i + 1) * all[static_cast<std::size_t>(i)].sum();
    return sum;
  }
  std::vector<at::Tensor> all;
};

TEST(DistributedDataParallel, ParametersThatNoRankUsesKeepNoGradient) {
  for (const char* strategy : {"all_reduce", "overlapped"}) {
    run_worlds(2, [&](World& world) {
      Branches module;
      const DistributedDataParallel ddp(module, world, {.strategy = strategy, .find_unused_parameters = true});
      torch::optim::SGD optimizer(module.parameters(), torch::optim::SGDOptions(0.1).weight_decay(0.5));
      for (int step = 0; step < 3; ++step) {
        optimizer.zero_grad();
        module.forward(world.rank() == 0 ? std::vector{0} : std::vector{0, 1}).backward();
        EXPECT_FALSE(module.all[2].grad().defined());
        EXPECT_TRUE(at::equal(module.all[0].grad(), at::ones({2})));
        EXPECT_TRUE(at::equal(module.all[1].grad(), at::ones({2}))) << "the mean of 0 and 2";
        optimizer.step();
      }
      EXPECT_TRUE(at::equal(module.all[2], at::ones({2}))) << "no weight decay";
      module.forward({2}).backward();
      EXPECT_TRUE(at::equal(module.all[2].grad(), at::full({2}, 3.0)));
    });
  }
}

TEST(DistributedDataParallel, WithoutTheSearchUnusedParametersGetZeros) {
  run_worlds(2, [](World& world) {
    Branches module;
    const DistributedDataParallel ddp(module, world, {.strategy = "overlapped"});
    module.forward({2}).backward();
    module.zero_grad();
    module.forward({0}).backward();
    EXPECT_TRUE(at::equal(module.all[2].grad(), at::zeros({2}))) << "not the gradients of the step before";
  });
}

// Trains rank r of P for `batches[r]` steps, as one process would: the mean over the ranks that have a batch.
std::vector<at::Tensor> trained_unevenly(const std::vector<int>& batches, double divisor_of_all) {
  Net net;
  const auto optimizer = make_sgd(net.parameters());
  const auto ranks = static_cast<std::int64_t>(batches.size());
  for (int step = 0;; ++step) {
    std::vector<at::Tensor> losses;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      if (step >= batches[static_cast<std::size_t>(rank)]) continue;
      losses.push_back(loss_of(net, rows_of(step, rank * (kRows / ranks), kRows / ranks)));
    }
    if (losses.empty()) return values_of(net);
    optimizer->zero_grad();
    const double divisor = divisor_of_all > 0 ? divisor_of_all : static_cast<double>(losses.size());
    (at::stack(losses).sum() / divisor).backward();
    optimizer->step();
  }
}

TEST(DistributedDataParallel, JoinTakesUnevenNumbersOfBatches) {
  const std::vector<int> batches{2, 0, 4};
  for (const char* strategy : {"all_reduce", "overlapped"}) {
    for (const bool divide_by_all : {false, true}) {
      const auto expected = trained_unevenly(batches, divide_by_all ? 3 : 0);
      run_worlds(3, [&](World& world) {
        Net net;
        DistributedDataParallel ddp(net, world,
                                    {.strategy = strategy,
                                     .bucket_bytes = 100,
                                     .find_unused_parameters = true,
                                     .uneven_inputs = true,
                                     .divide_by_all_ranks = divide_by_all});
        const auto optimizer = make_sgd(net.parameters());
        for (int step = 0; step < batches[static_cast<std::size_t>(world.rank())]; ++step) {
          optimizer->zero_grad();
          loss_of(net, own_rows(step, world)).backward();
          optimizer->step();
        }
        EXPECT_EQ(ddp.join(), 2) << "the rank that took most steps";
        expect_near(values_of(net), expected);
        EXPECT_TRUE(equal_on_all_ranks(values_of(net), world));
        if (world.rank() == 1) loss_of(net, own_rows(0, world)).backward();
        EXPECT_EQ(ddp.join(), 1) << "of the second epoch";
      });
    }
  }
}

struct WithStatistics : torch::nn::Module {
  WithStatistics() { norm = register_module("norm", torch::nn::BatchNorm1d(3)); }
  at::Tensor forward(const at::Tensor& input) { return norm(input); }
  torch::nn::BatchNorm1d norm{nullptr};
};

TEST(DistributedDataParallel, BuffersAreThoseOfRank0) {
  for (const bool broadcast : {true, false}) {
    run_worlds(2, [&](World& world) {
      WithStatistics module;
      module.norm->running_mean.fill_(world.rank() + 1);
      const DistributedDataParallel ddp(module, world, {.broadcast_buffers = broadcast});
      EXPECT_TRUE(at::equal(module.norm->running_mean, at::ones({3})));
      module.forward(own_rows(0, world)).sum().backward();
      EXPECT_EQ(equal_on_all_ranks({module.norm->running_mean, module.norm->running_var}, world), broadcast);
      EXPECT_EQ(module.norm->num_batches_tracked.item<std::int64_t>(), 1);
    });
  }
}

// Two dtypes, a layer under two names, and a parameter that is not trained.
struct Mixed : torch::nn::Module {
  Mixed() {
    layer = register_module("layer", torch::nn::Linear(3, 3));
    register_module("again", layer);
    wide = register_parameter("wide", at::ones({4}, at::kDouble));
    fixed = register_parameter("fixed", at::ones({2}), /*requires_grad=*/false);
  }
  at::Tensor forward(const at::Tensor& input) { return layer(layer(input)).sum() + wide.sum(); }
  torch::nn::Linear layer{nullptr};
  at::Tensor wide, fixed;
};

TEST(DistributedDataParallel, TakesSeveralDtypesSharedLayersAndFixedParameters) {
  run_worlds(2, [](World& world) {
    Mixed module;
    module.fixed.fill_(world.rank() + 7);
    DistributedDataParallel ddp(module, world, {.strategy = "overlapped"});
    EXPECT_TRUE(at::equal(module.fixed, at::full({2}, 7.0)));
    module.forward(own_rows(0, world)).backward();
    EXPECT_TRUE(at::equal(module.wide.grad(), at::ones({4}, at::kDouble)));
    EXPECT_TRUE(equal_on_all_ranks({module.layer->weight.grad()}, world));
  });
}

TEST(DistributedDataParallel, LocalSgdAveragesEveryFewSteps) {
  run_worlds(2, [](World& world) {
    Net net;
    DistributedDataParallel ddp(net, world, {.strategy = "local_sgd", .strategy_options = {{"every", "2"}}});
    torch::optim::SGD optimizer(net.parameters(), 0.1);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      loss_of(net, own_rows(step, world)).backward();
      optimizer.step();
      ddp.after_step();
      EXPECT_EQ(equal_on_all_ranks(values_of(net), world), step % 2 == 1) << "step " << step;
    }
    ddp.finish();
    EXPECT_TRUE(equal_on_all_ranks(values_of(net), world));
  });
}

TEST(DistributedDataParallel, OtherStrategiesForOwnLoopsTrain) {
  for (const char* strategy : {"gossip", "diloco", "easgd", "downpour"}) {
    run_worlds(2, [&](World& world) { train(world, {.strategy = strategy}); });
  }
}

TEST(DistributedDataParallel, LeavesTheModuleUsableWhenItIsDestroyed) {
  run_worlds(2, [](World& world) {
    Net net;
    {
      const DistributedDataParallel ddp(net, world, {.strategy = "overlapped"});
    }
    if (world.rank() == 1) return;
    loss_of(net, own_rows(0, world)).backward();  // alone
    EXPECT_TRUE(net.first->weight.grad().abs().sum().item<float>() > 0);
  });
}

}  // namespace
}  // namespace phalanx
