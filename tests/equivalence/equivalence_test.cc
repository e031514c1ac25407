// SPDX-License-Identifier: Apache-2.0
// Compares every strategy on every backend with training in one process: equal global batches give equal parameters.
// Linked with one backend at a time; see BUILD.bazel.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "framework/testing/backend_under_test.h"
#include "framework/testing/file_name.h"
#include "framework/testing/worlds.h"
#include "tests/equivalence/training.h"

namespace phalanx {
namespace {

using testing::file_name;
using testing::kBackend;
using testing::relative_difference;
using testing::run_ranks;
using testing::train;
using testing::train_on_first;
using testing::Trained;

ExperimentConfig config_for(const std::string& model, const std::string& strategy) {
  return testing::training_config({"model=" + model, "strategy=" + strategy});
}

using Case = std::tuple<std::string, std::string, int>;  // model, strategy, ranks

class Equivalence : public ::testing::TestWithParam<Case> {
 protected:
  std::string model() const { return std::get<0>(GetParam()); }
  std::string strategy() const { return std::get<1>(GetParam()); }
  int ranks() const { return std::get<2>(GetParam()); }
  std::string run_name(const std::string& suffix) const {
    return file_name(std::string(kBackend) + "_" + model() + "_" + strategy()) + std::to_string(ranks()) + suffix;
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, Equivalence,
                         ::testing::Combine(::testing::Values("smooth_under_test"),
                                            ::testing::Values("all_reduce", "overlapped", "sharded", "sync_ps"),
                                            ::testing::Values(2, 3, 4)));

// The loss never depends on one of the layers, and depends on two others only if a rank has samples for them. A
// parameter for which no rank has a gradient stays unchanged; if some rank has a gradient, the others' count as zero.
INSTANTIATE_TEST_SUITE_P(UnusedParameters, Equivalence,
                         ::testing::Combine(::testing::Values("branches_under_test"),
                                            ::testing::Values("all_reduce", "overlapped", "sharded",
                                                              "{sharded: {stage: 2}}", "{sharded: {stage: 3}}"),
                                            ::testing::Values(3)));

// Returns strategies that share memory between ranks, if the backend supports that.
std::vector<std::string> with_shared_memory(std::vector<std::string> strategies) {
  const std::string backend = kBackend;
  return backend == "inproc" || backend == "shm" ? std::move(strategies) : std::vector<std::string>{};
}
// Returns strategies that share memory inside of hosts, if the backend supports that.
std::vector<std::string> with_shared_hosts(std::vector<std::string> strategies) {
  return kBackend == std::string("hybrid_of_shm") ? std::move(strategies) : with_shared_memory(std::move(strategies));
}
const char* const kOneCopy = "{sharded: {one_copy: true}}";
const char* const kOneCopyInside = "{intra: {sharded: {one_copy: true}}, inter: all_reduce}";
INSTANTIATE_TEST_SUITE_P(OneCopy, Equivalence,
                         ::testing::Combine(::testing::Values("smooth_under_test"),
                                            ::testing::ValuesIn(with_shared_memory({kOneCopy})),
                                            ::testing::Values(2, 4)));

INSTANTIATE_TEST_SUITE_P(OneCopyInside, Equivalence,
                         ::testing::Combine(::testing::Values("smooth_under_test"),
                                            ::testing::ValuesIn(with_shared_hosts({kOneCopyInside})),
                                            ::testing::Values(2, 4)));

INSTANTIATE_TEST_SUITE_P(
    Levels, Equivalence,
    ::testing::Combine(::testing::Values("smooth_under_test"),
                       ::testing::Values("{intra: overlapped, inter: all_reduce, ranks_per_group: 2}",
                                         "{intra: all_reduce, inter: {local_sgd: {every: 1, momentum: average}}, "
                                         "ranks_per_group: 4}",
                                         "{intra: overlapped, inter: sync_ps, ranks_per_group: 2, leaders: 1}"),
                       ::testing::Values(3, 4)));

// The loss is the mean over the global batch, however many ranks share it and however unevenly.
TEST_P(Equivalence, RanksFollowOneProcess) {
  run_ranks(kBackend, ranks(), [this](const CommunicatorPtr& world) {
    const Trained many = train(config_for(model(), strategy()), world, run_name(""));
    const Trained one = train_on_first(config_for(model(), "single"), world, run_name("_alone"), many);
    EXPECT_LT(relative_difference(many.weights, one.weights), 1e-5);
    ASSERT_EQ(many.test.size(), one.test.size());
    for (std::size_t i = 0; i < one.test.size(); ++i) {
      EXPECT_NEAR(many.test[i].second, one.test[i].second, 1e-4) << one.test[i].first;
    }
  });
}

// Unused parameters do not change, despite momentum and weight decay, as in PyTorch.
class EquivalenceOfUnused : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Strategies, EquivalenceOfUnused,
                         ::testing::Values("single", "all_reduce", "overlapped", "sharded", "{sharded: {stage: 2}}",
                                           "{sharded: {stage: 3}}",
                                           "{intra: overlapped, inter: all_reduce, ranks_per_group: 2}"));

TEST_P(EquivalenceOfUnused, ParametersKeepTheirInitialValues) {
  constexpr std::int64_t kUnused = 12 * 12 + 12, kBehind = 12 * 10 + 10;  // see branches_model.cc
  run_ranks(kBackend, GetParam() == "single" ? 1 : 3, [&](const CommunicatorPtr& world) {
    const auto after = [&](const std::string& steps) {
      const auto run = file_name(std::string(kBackend) + "_unused_" + GetParam() + steps);
      const auto config = testing::training_config(
          {"model=branches_under_test", "strategy=" + GetParam(), "train.accumulate=2", "train.max_steps=" + steps});
      return train(config, world, run).weights;
    };
    const at::Tensor soon = after("1"), late = after("9");
    const auto unused = [](const at::Tensor& weights) {
      return weights.narrow(0, weights.numel() - kBehind - kUnused, kUnused);
    };
    EXPECT_TRUE(at::equal(unused(soon), unused(late)));
    const auto behind = [](const at::Tensor& weights) { return weights.narrow(0, weights.numel() - kBehind, kBehind); };
    EXPECT_FALSE(at::equal(behind(soon), behind(late)));
  });
}

// Servers that take one step with the mean of all ranks' gradients compute the same as the optimizer of one process.
class EquivalenceOfServers : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Optimizers, EquivalenceOfServers,
                         ::testing::Values("{name: sgd, lr: 0.01, momentum: 0.9, weight_decay: 0.001}",
                                           "{name: adam, lr: 0.001, eps: 0.001}",
                                           "{name: adagrad, lr: 0.01, eps: 0.001}",
                                           "{name: rmsprop, lr: 0.001, eps: 0.001}"));

TEST_P(EquivalenceOfServers, RanksFollowOneProcessWithThatOptimizer) {
  run_ranks(kBackend, 3, [&](const CommunicatorPtr& world) {
    const auto run = file_name(std::string(kBackend) + "_servers_" + GetParam());
    const std::vector<std::string> common{"model=smooth_under_test", "train.max_steps=60"};
    auto one = common, many = common;
    one.insert(one.end(), {"strategy=single", "optimizer=" + GetParam()});
    many.push_back("strategy={sync_ps: {server_optimizer: " + GetParam() + "}}");
    const Trained trained = train(testing::training_config(many), world, run);
    const Trained expected = train_on_first(testing::training_config(one), world, run + "_alone", trained);
    EXPECT_LT(relative_difference(trained.weights, expected.weights), 1e-5);
  });
}

// Buckets of the default size are few in shared memory, and small if they are sent during backward.
TEST(DefaultBuckets, AreSmallBetweenRanksWithoutCommonMemory) {
  run_ranks(kBackend, 2, [](const CommunicatorPtr& world) {
    const auto config =
        testing::training_config({"framework.bucket_bytes=default", "strategy=auto", "train.max_steps=2"});
    const auto bytes = train(config, world, file_name(std::string(kBackend) + "_default_buckets")).bucket_bytes;
    if (world->shares_memory()) {
      EXPECT_EQ(bytes, 25 << 20);
    } else {
      EXPECT_LE(bytes, 128 << 10);
    }
  });
}

// Accumulation with clipping, and an optimizer that needs whole parameters, together with everything else in the
// update.
class EquivalenceOfOptions : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Strategies, EquivalenceOfOptions,
                         ::testing::Values("all_reduce", "overlapped", "sharded",
                                           "{intra: sharded, inter: all_reduce, ranks_per_group: 2}",
                                           "{intra: all_reduce, inter: all_reduce, ranks_per_group: 3}"));

INSTANTIATE_TEST_SUITE_P(OneCopy, EquivalenceOfOptions, ::testing::ValuesIn(with_shared_memory({kOneCopy})));

TEST_P(EquivalenceOfOptions, RanksFollowOneProcess) {
  const std::vector<std::vector<std::string>> options{
      {"model=smooth_under_test", "train.accumulate=3", "train.clip_norm=0.5"},
      {"model=smooth_under_test", "train.clip_value=0.01"},
      {"model=smooth_under_test", "optimizer={name: lamb, lr: 0.01}", "framework.bucket_bytes=1KB"}};
  run_ranks(kBackend, 4, [&](const CommunicatorPtr& world) {
    for (const auto& changes : options) {
      const auto run = file_name(std::string(kBackend) + GetParam() + changes[1]);
      auto one = changes, many = changes;
      one.push_back("strategy=single");
      many.push_back("strategy=" + GetParam());
      for (auto* all : {&one, &many}) all->push_back("train.max_steps=40");  // 5 epochs, each with a partial batch
      const Trained trained = train(testing::training_config(many), world, run);
      const Trained expected = train_on_first(testing::training_config(one), world, run + "_alone", trained);
      EXPECT_LT(relative_difference(trained.weights, expected.weights), 1e-5) << changes[1];
    }
  });
}

class EquivalenceOfBits : public Equivalence {};
INSTANTIATE_TEST_SUITE_P(Strategies, EquivalenceOfBits,
                         ::testing::Combine(::testing::Values("mlp"),
                                            ::testing::Values("all_reduce", "overlapped", "sharded"),
                                            ::testing::Values(2, 4)));

INSTANTIATE_TEST_SUITE_P(OneCopy, EquivalenceOfBits,
                         ::testing::Combine(::testing::Values("mlp"),
                                            ::testing::ValuesIn(with_shared_memory({kOneCopy})),
                                            ::testing::Values(2, 4)));

// Compares bits, so that a changed sign or order would show.
TEST_P(EquivalenceOfBits, ReplicasAreBitwiseEqual) {
  run_ranks(kBackend, ranks(), [this](const CommunicatorPtr& world) {
    const Trained own = train(config_for(model(), strategy()), world, run_name("_replica"));
    at::Tensor root = own.weights.clone();
    world->broadcast(root, 0).wait();
    EXPECT_TRUE(at::equal(own.weights, root)) << "rank " << world->rank() << " differs from rank 0";
  });
}

TEST_P(EquivalenceOfBits, TheSameSeedGivesTheSameBitsTwice) {
  run_ranks(kBackend, ranks(), [this](const CommunicatorPtr& world) {
    const auto config = config_for(model(), strategy());
    const Trained first = train(config, world, run_name("_first"));
    const Trained second = train(config, world, run_name("_second"));
    EXPECT_TRUE(at::equal(first.weights, second.weights));
    EXPECT_EQ(first.test, second.test);
    auto other = config;
    other.seed = config.seed + 1;
    EXPECT_FALSE(at::equal(first.weights, train(other, world, run_name("_other")).weights));
  });
}

}  // namespace
}  // namespace phalanx
