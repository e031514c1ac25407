// SPDX-License-Identifier: Apache-2.0
// A model must learn equally well with each compression of its gradients.
#include <ATen/Parallel.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "engine/experiment/experiment.h"
#include "framework/base/config/config.h"
#include "framework/testing/worlds.h"
#include "models/model.h"

namespace phalanx {
namespace {

constexpr const char* kConfig = R"(
name: compressed
model: {name: mlp, hidden: [64]}
dataset: {name: digits, train_samples: 6000, test_samples: 1000, side: 16}
optimizer: {name: sgd, lr: 0.05, momentum: 0.9}
schedule: cosine
framework: {bucket_bytes: 16KB}
train: {global_batch_size: 64, epochs: 8}
evaluate: {every_epochs: 0}
watch: {progress: false}
)";

ExperimentConfig config_for(const std::string& compression) {
  ExperimentConfig config;
  config::load_text(config, kConfig, "compressed.yaml",
                    {"strategy={name: all_reduce, compression: " + compression + "}"});
  return config;
}

struct Trained {
  double accuracy = 0;
  at::Tensor weights;  // all parameters, concatenated
};

Trained train(const ExperimentConfig& config, const CommunicatorPtr& world, const RunFolder& folder) {
  at::set_num_threads(1);
  const auto result = run_experiment(config, {.world = world, .splits = config.dataset.make(), .folder = folder});
  Trained trained;
  for (const auto& [name, value] : result.test) {
    if (name == "accuracy") trained.accuracy = value;
  }
  std::vector<at::Tensor> flat;
  for (const auto& parameter : result.model->parameters()) flat.push_back(parameter.detach().flatten());
  trained.weights = at::concat(flat);
  return trained;
}

// Returns the result of both replicas, which must be the same.
Trained train_two(const std::string& compression) {
  const auto config = config_for(compression);
  const std::string path = ::testing::TempDir() + "/compressed";
  std::filesystem::remove_all(path);
  const RunFolder folder = RunFolder::create(path);
  std::vector<Trained> replicas(2);
  testing::run_ranks("inproc", 2,
                     [&](const CommunicatorPtr& world) { replicas[world->rank()] = train(config, world, folder); });
  if (!replicas[0].weights.defined() || !replicas[1].weights.defined()) return {};
  EXPECT_TRUE(at::equal(replicas[0].weights, replicas[1].weights)) << "replicas differ";
  return replicas[0];
}

class CompressedTraining : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() { uncompressed_ = train_two("none").accuracy; }
  static inline double uncompressed_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Names, CompressedTraining,
                         ::testing::Values("fp16", "bf16", "int8", "one_bit", "{name: topk, fraction: 0.02}",
                                           "{name: powersgd, rank: 2}"));

TEST_P(CompressedTraining, LearnsAsMuchAndKeepsReplicasEqual) {
  const double accuracy = train_two(GetParam()).accuracy;
  RecordProperty("accuracy", std::to_string(accuracy));
  EXPECT_GE(uncompressed_, 0.9);
  EXPECT_GE(accuracy, uncompressed_ - 0.02);
}

}  // namespace
}  // namespace phalanx
