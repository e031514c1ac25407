// SPDX-License-Identifier: Apache-2.0
// Compares stages 2 and 3 of strategy `sharded` with all_reduce on as many ranks: the same weights, with everything
// that happens around a step. mesh_test.cc has meshes, clipping, averages and checkpoints of other ranks. Linked with
// one backend at a time.
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/config/check.h"
#include "framework/base/error.h"
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
using testing::training_config;
using Changes = std::vector<std::string>;

std::string text_file() {
  const std::string path = ::testing::TempDir() + "/letters.txt";
  std::ofstream file(path);
  for (int i = 0; i < 3000; ++i) file << static_cast<char>('a' + (i * i / 7 + i / 3) % 10);
  return path;
}

Changes model_of(const std::string& kind) {
  Changes changes{"train.max_steps=12", "train.global_batch_size=18", "schedule=constant",
                  "checkpoint.final_weights=false"};
  if (kind == "gpt") {
    changes.insert(changes.end(), {"model={name: gpt, layers: 4, heads: 2, width: 16}",
                                   "dataset={name: text, file: " + text_file() + ", context: 16}"});
  } else if (kind == "mlp") {
    changes.push_back("model={name: mlp, hidden: [24, 24, 12]}");
  } else {
    changes.insert(changes.end(),
                   {"model=" + kind, "dataset={name: digits, train_samples: 60, test_samples: 10, side: 16}"});
  }
  return changes;
}

ExperimentConfig config_of(const std::string& kind, const std::string& strategy, const Changes& more) {
  auto changes = model_of(kind);
  changes.push_back("strategy=" + strategy);
  changes.insert(changes.end(), more.begin(), more.end());
  return training_config(changes);
}

void expect_as_all_reduce(const std::string& kind, int ranks, const std::string& strategy, const Changes& more = {}) {
  run_ranks(kBackend, ranks, [&](const CommunicatorPtr& world) {
    const auto run = file_name(std::string(kBackend) + kind + strategy + (more.empty() ? "" : more.back()));
    const auto sharded = train(config_of(kind, strategy, more), world, run);
    const auto reduced = train(config_of(kind, "all_reduce", more), world, run + "_all_reduce");
    EXPECT_LT(relative_difference(sharded.weights, reduced.weights), 1e-5);
    ASSERT_EQ(sharded.test.size(), reduced.test.size());
    for (std::size_t i = 0; i < reduced.test.size(); ++i) {
      EXPECT_NEAR(sharded.test[i].second, reduced.test[i].second, 1e-4) << reduced.test[i].first;
    }
  });
}

constexpr const char *kStage2 = "{sharded: {stage: 2}}", *kStage3 = "{sharded: {stage: 3}}",
                     *kStage3Kept = "{sharded: {stage: 3, reshard_after_forward: false}}";

using Case = std::tuple<std::string, std::string, int>;  // model, strategy, ranks
class ShardedStages : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Models, ShardedStages,
                         ::testing::Combine(::testing::Values("gpt", "mlp", "lenet"),
                                            ::testing::Values(kStage2, kStage3, kStage3Kept),
                                            ::testing::Values(2, 3, 4)));

TEST_P(ShardedStages, TrainAsAllReduce) {
  const auto& [kind, strategy, ranks] = GetParam();
  expect_as_all_reduce(kind, ranks, strategy);
}

class ShardedOptions : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Stages, ShardedOptions, ::testing::Values(kStage2, kStage3, kStage3Kept));

TEST_P(ShardedOptions, AccumulateClipAndAverage) {
  expect_as_all_reduce("gpt", 4, GetParam(), {"train.clip_norm=0.1", "train.ema_decay=0.9", "train.accumulate=3"});
}

// 18 samples on 4 ranks, in parts of 2 or 1.
TEST_P(ShardedOptions, AccumulateMorePartsThanSomeRanksHaveSamples) {
  expect_as_all_reduce("mlp", 4, GetParam(), {"train.accumulate=5"});
}

TEST_P(ShardedOptions, RecomputeActivations) {
  expect_as_all_reduce("gpt", 2, GetParam(), {"train.checkpoint_activations=4"});
  expect_as_all_reduce("gpt", 3, GetParam(), {"train.checkpoint_activations=2", "train.accumulate=2"});
}

TEST_P(ShardedOptions, ResidualsAndBatchNorm) {
  expect_as_all_reduce("resnet18", 2, GetParam(), {"train.max_steps=2", "train.global_batch_size=6"});
}

TEST_P(ShardedOptions, OptimizersOfWholeParameters) {
  expect_as_all_reduce("gpt", 3, GetParam(), {"optimizer={name: lamb, lr: 0.01}"});
  expect_as_all_reduce("gpt", 2, GetParam(), {"optimizer={name: muon, lr: 0.01}"});
}

TEST_P(ShardedOptions, HalfPrecision) {
  run_ranks(kBackend, 2, [&](const CommunicatorPtr& world) {
    const auto run = file_name(std::string(kBackend) + "_bf16_" + GetParam());
    const auto sharded = train(config_of("gpt", GetParam(), {"train.precision=bf16"}), world, run);
    const auto reduced = train(config_of("gpt", "all_reduce", {"train.precision=bf16"}), world, run + "_all_reduce");
    EXPECT_LT(relative_difference(sharded.weights, reduced.weights), 1e-4);
  });
}

TEST_P(ShardedOptions, EvaluateWhileTraining) {
  expect_as_all_reduce("gpt", 2, GetParam(), {"replica_check.every_steps=1", "evaluate.every_steps=3"});
}

TEST_P(ShardedOptions, ResumeBitForBit) {
  run_ranks(kBackend, 2, [&](const CommunicatorPtr& world) {
    const auto run = file_name(std::string(kBackend) + "_resumed_" + GetParam());
    const auto whole = train(config_of("gpt", GetParam(), {}), world, run + "_whole");
    int steps = 0;
    train(config_of("gpt", GetParam(), {}), world, run, [&] { return ++steps == 5; });
    world->barrier().wait();
    const auto rest = train(config_of("gpt", GetParam(), {"checkpoint.resume=auto"}), world, run);
    EXPECT_TRUE(at::equal(rest.weights, whole.weights)) << "rank " << world->rank();
    EXPECT_EQ(rest.test, whole.test);
  });
}

// The other ranks wait for its shards, in forward or backward.
TEST_P(ShardedOptions, AFailedRankEndsTheOthers) {
  run_ranks(kBackend, 3, [&](const CommunicatorPtr& world) {
    int steps = 0;
    const auto end_in_the_middle = [&] {
      if (world->rank() == 1 && ++steps == 3) throw std::runtime_error("ended by the test");
      return false;
    };
    std::string text = "nothing ended";
    try {
      train(config_of("gpt", GetParam(), {}), world, file_name(std::string(kBackend) + "_ended_" + GetParam()),
            end_in_the_middle);
    } catch (const CommError&) {
      text = "peer lost";
    } catch (const std::runtime_error& error) {
      text = error.what();
    }
    EXPECT_EQ(text, world->rank() == 1 ? "ended by the test" : "peer lost");
  });
}

// ---- settings that do not fit

void expect_refused(const std::string& kind, const std::string& strategy, const Changes& changes, const char* part) {
  run_ranks(kBackend, 2, [&](const CommunicatorPtr& world) {
    std::string text = "nothing was refused";
    try {
      const auto config = config_of(kind, strategy, changes);
      check(config);
      train(config, world, file_name("refused" + strategy));
    } catch (const ConfigError& error) {
      text = error.what();
    }
    EXPECT_NE(text.find(part), std::string::npos) << text;
  });
}

TEST(ShardedErrors, NameWhatDoesNotFit) {
  expect_refused("smooth_under_test", kStage3, {}, "model smooth_under_test is not a chain of blocks");
  expect_refused("mlp", "{sharded: {stage: 2, one_copy: true}}", {}, "strategy.one_copy: cannot be combined");
  expect_refused("mlp", "{sharded: {stage: 3, compression: int8}}", {}, "strategy.compression: cannot be combined");
  expect_refused("mlp", "{sharded: {stage: 2, reshard_after_forward: false}}", {}, "is for stage: 3 only");
  expect_refused("mlp", kStage2, {"train.data_parallel=2"}, "train.data_parallel");
  expect_refused("mlp", kStage3, {"determinism=world_size_invariant"}, "strategy");
}

}  // namespace
}  // namespace phalanx
