// SPDX-License-Identifier: Apache-2.0
// Tests that tools:train accepts every file in configs/.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "engine/config/check.h"
#include "engine/config/experiment_config.h"
#include "framework/base/config/config.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

using ::testing::IsSupersetOf;

std::vector<fs::path> config_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator("configs")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string stem(const ::testing::TestParamInfo<fs::path>& info) { return info.param.stem(); }

class Configs : public ::testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override { ASSERT_NO_THROW(config::load(config_, GetParam())); }

  ExperimentConfig config_;
};
INSTANTIATE_TEST_SUITE_P(EveryFile, Configs, ::testing::ValuesIn(config_files()), stem);

TEST_P(Configs, LoadsAndIsConsistent) { EXPECT_NO_THROW(check(config_)); }

TEST_P(Configs, IsTheSameAfterReadingItsDump) {
  const std::string dumped = config::dump(config_);
  ExperimentConfig again;
  ASSERT_NO_THROW(config::load_text(again, dumped, "dump.yaml"));
  EXPECT_EQ(config::dump(again), dumped);
  EXPECT_NO_THROW(check(again));
}

TEST_P(Configs, GivesTheRunTheNameOfTheFile) { EXPECT_EQ(config_.name, GetParam().stem()); }

TEST_P(Configs, HasAnExpectedResult) {
  const auto& expected = config_.expect.test;
  if (config_.task.selected() == "variational" || config_.task.selected() == "adversarial") {  // these only have a loss
    ASSERT_TRUE(expected.contains("loss"));
    EXPECT_GT(expected.at("loss").max.value_or(0), 0);
    return;
  }
  const char* metric = expected.contains("auc") ? "auc" : "accuracy";
  ASSERT_TRUE(expected.contains(metric));
  EXPECT_GT(expected.at(metric).min.value_or(0), 0);
}

// A run can only have the losses of another one if it trains the same model with the same samples in the same way.
TEST_P(Configs, HasTheLossesOfAConfigThatTrainsTheSame) {
  const auto& same_as = config_.expect.same_as;
  if (same_as.config.empty()) return;
  ExperimentConfig other;
  ASSERT_NO_THROW(config::load(other, fs::path("configs") / same_as.config));
  EXPECT_EQ(config::dump_as("model", other.model), config::dump_as("model", config_.model));
  EXPECT_EQ(config::dump_as("dataset", other.dataset), config::dump_as("dataset", config_.dataset));
  EXPECT_EQ(config::dump_as("optimizer", other.optimizer), config::dump_as("optimizer", config_.optimizer));
  EXPECT_EQ(config::dump_as("schedule", other.schedule), config::dump_as("schedule", config_.schedule));
  EXPECT_EQ(other.train.global_batch_size, config_.train.global_batch_size);
  EXPECT_EQ(other.train.clip_norm, config_.train.clip_norm);
  EXPECT_EQ(other.seed, config_.seed);
  EXPECT_EQ(other.launch.ranks, 1) << "the reference is a single process";
}

// Datasets of a user's own files have no known result. docs/data.md shows how to train on them, on relatives of mnist
// and cifar10, and on datasets that are made from others. Random numbers have nothing to learn.
TEST(ConfigFolder, HasOneOfEachStrategyAndDataset) {
  std::set<std::string> strategies,
      datasets{"cifar100",     "concat",       "csv",      "cutmix", "documents", "emnist",        "fashion_mnist",
               "image_folder", "image_shards", "mix",      "mixup",  "numpy",     "random_images", "random_tokens",
               "regression",   "repeat",       "resample", "split",  "subset",    "tokens",        "triplets"};
  for (const auto& file : config_files()) {
    ExperimentConfig config;
    config::load(config, file);
    strategies.insert(config.strategy.selected());
    datasets.insert(config.dataset.selected());
  }
  EXPECT_THAT(strategies, IsSupersetOf(Strategies::global().names()));
  EXPECT_THAT(datasets, IsSupersetOf(Datasets::global().names()));
}

TEST(ConfigFolder, HasTheFirstExamples) {
  EXPECT_THAT(config_files(),
              IsSupersetOf({fs::path("configs/mnist_allreduce.yaml"), fs::path("configs/mnist_single.yaml"),
                            fs::path("configs/quickstart.yaml")}));
}

}  // namespace
}  // namespace phalanx
