// SPDX-License-Identifier: Apache-2.0
// Tests batch norm under strategies. With sync_batch_norm, training on any number of ranks equals one process on the
// union of their batches; without it, it equals a reference with separate statistics of each rank's share.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "datasets/loader.h"
#include "engine/experiment/experiment.h"
#include "framework/base/config/config.h"
#include "framework/base/random.h"
#include "framework/testing/worlds.h"
#include "models/model.h"

namespace phalanx {
namespace {

// 70 samples in batches of 16: 5 steps per epoch, of which the last has 6 samples; 100 steps in total.
constexpr const char* kConfig = R"(
name: norms
seed: 2
model: norms_under_test
dataset: {name: digits, train_samples: 70, test_samples: 20, side: 16}
optimizer: {name: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.001}
framework: {bucket_bytes: 1KB}
train: {global_batch_size: 16, epochs: 20}
evaluate: {every_epochs: 0}
checkpoint: {final_weights: false}
watch: {progress: false}
)";

ExperimentConfig config_with(const std::vector<std::string>& changes) {
  ExperimentConfig config;
  config::load_text(config, kConfig, "norms.yaml", changes);
  return config;
}

struct TrainedNorms {
  at::Tensor parameters, statistics;
};

TrainedNorms values_of(const Model& model) {
  std::vector<at::Tensor> parameters, statistics;
  for (const auto& parameter : model.parameters()) parameters.push_back(parameter.detach().flatten().clone());
  for (const auto& buffer : model.buffers()) statistics.push_back(buffer.flatten().to(at::kFloat));
  return {at::concat(parameters), at::concat(statistics)};
}

// Returns the results by rank.
std::vector<TrainedNorms> train(int ranks, const std::vector<std::string>& changes) {
  static int number = 0;
  const auto config = config_with(changes);
  const std::string path = ::testing::TempDir() + "/norms" + std::to_string(++number);
  std::filesystem::remove_all(path);
  const auto folder = RunFolder::create(path);
  const auto splits = config.dataset.make();
  std::vector<TrainedNorms> trained(static_cast<std::size_t>(ranks));
  testing::run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    at::set_num_threads(1);
    const auto result = run_experiment(config, {.world = world, .splits = splits, .folder = folder});
    trained[static_cast<std::size_t>(world->rank())] = values_of(*result.model);
  });
  return trained;
}

double difference(const at::Tensor& a, const at::Tensor& b) { return ((a - b).norm() / b.norm()).item<double>(); }

class Synchronized : public ::testing::TestWithParam<std::tuple<std::string, int>> {};
INSTANTIATE_TEST_SUITE_P(Strategies, Synchronized,
                         ::testing::Combine(::testing::Values("all_reduce", "overlapped", "sharded"),
                                            ::testing::Values(2, 3, 4)));

// With 3 and 4 ranks, the shares of 16 and 6 samples are uneven.
TEST_P(Synchronized, RanksFollowOneProcess) {
  const auto [strategy, ranks] = GetParam();
  static const auto one = train(1, {"strategy=single"});  // for all of these tests
  const auto many = train(ranks, {"strategy=" + strategy, "train.sync_batch_norm=true"});
  for (const auto& replica : many) {
    EXPECT_LT(difference(replica.parameters, one[0].parameters), 1e-5);
    EXPECT_LT(difference(replica.statistics, one[0].statistics), 1e-5);
    EXPECT_TRUE(at::equal(replica.parameters, many[0].parameters));
    EXPECT_TRUE(at::equal(replica.statistics, many[0].statistics));
  }
}

TEST(SynchronizedNorms, MoreRanksThanSamplesFollowOneProcess) {
  const std::vector<std::string> few{"dataset.train_samples=34", "train.epochs=10"};  // a last batch of 2
  const auto one = train(1, {few[0], few[1], "strategy=single"});
  const auto many = train(4, {few[0], few[1], "train.sync_batch_norm=true"});
  EXPECT_LT(difference(many[3].parameters, one[0].parameters), 1e-5);
  EXPECT_LT(difference(many[3].statistics, one[0].statistics), 1e-5);
}

// The statistics of the i-th part cover the i-th parts of all ranks. So replicas and their statistics stay equal, even
// if ranks have fewer rows than parts.
TEST(SynchronizedNorms, CountTheSamePartOfAllRanksWithAccumulation) {
  const std::vector<std::string> parts{"train.accumulate=6", "dataset.train_samples=64", "train.epochs=4",
                                       "train.sync_batch_norm=true"};
  for (const int ranks : {2, 3, 4}) {
    for (const std::string strategy : {"all_reduce", "overlapped"}) {
      auto changes = parts;
      changes.push_back("strategy=" + strategy);
      const auto many = train(ranks, changes);
      EXPECT_TRUE(at::equal(many[1].parameters, many[0].parameters)) << ranks << strategy;
      EXPECT_TRUE(at::equal(many[1].statistics, many[0].statistics)) << ranks << strategy;
    }
  }
}

TEST(SynchronizedNorms, GoWithCheckpointedActivationsOfOtherModels) {
  const std::vector<std::string> small{"model=resnet18", "dataset.side=16",           "dataset.train_samples=12",
                                       "train.epochs=1", "train.global_batch_size=6", "train.sync_batch_norm=true"};
  auto computed = small;
  computed.emplace_back("train.checkpoint_activations=3");
  computed.emplace_back("strategy=overlapped");
  const auto kept = train(2, small), again = train(2, computed);
  EXPECT_TRUE(at::equal(again[0].parameters, kept[0].parameters));
  EXPECT_TRUE(at::equal(again[1].statistics, kept[1].statistics));
}

// Trains a reference with statistics of each rank's share, and gradients weighted by the rows of the share.
TrainedNorms reference_with_own_statistics(const ExperimentConfig& config, std::int64_t ranks) {
  const auto train_split = config.dataset.make().train;
  at::manual_seed(mix(static_cast<std::uint64_t>(config.seed), 0));
  const auto model = config.model.make(config.task.make(train_split->spec(), nullptr)->model());
  model->train();
  std::vector<std::unique_ptr<Loader>> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    shares.push_back(make_loader(train_split, {.samples = train_split->size(),
                                               .global_batch = config.train.global_batch_size,
                                               .seed = config.seed,
                                               .shuffle = true,
                                               .rank = rank,
                                               .size = static_cast<int>(ranks)}));
  }
  std::vector<at::Tensor> momentum;
  for (const auto& parameter : model->parameters()) momentum.push_back(at::zeros_like(parameter).detach());
  for (std::int64_t epoch = 0; epoch < config.train.epochs; ++epoch) {
    for (auto& share : shares) share->start_epoch(epoch, 0);
    for (std::int64_t i = 0; i < shares[0]->batches(); ++i) {
      for (auto& share : shares) {
        Batch batch;
        share->next(batch);
        const auto loss = at::cross_entropy_loss(model->forward(batch.inputs[0]), batch.targets[0]);
        (loss * (static_cast<double>(batch.valid) / static_cast<double>(batch.global_rows))).backward();
      }
      std::size_t k = 0;
      for (auto& parameter : model->parameters()) {
        const at::NoGradGuard no_grad;
        auto& m = momentum[k++];
        m = 0.9 * m + parameter.grad() + 0.001 * parameter;
        parameter.sub_(0.02 * m);
        parameter.mutable_grad() = at::Tensor();
      }
    }
  }
  return values_of(*model);
}

TEST(OwnNorms, RanksFollowAReferenceWithStatisticsOfEachShare) {
  const std::vector<std::string> changes{"train.epochs=10"};
  const auto reference = reference_with_own_statistics(config_with(changes), 2);
  for (const std::string strategy : {"all_reduce", "overlapped", "sharded"}) {
    const auto many = train(2, {changes[0], "strategy=" + strategy});
    EXPECT_LT(difference(many[0].parameters, reference.parameters), 1e-5) << strategy;
    EXPECT_TRUE(at::equal(many[1].parameters, many[0].parameters)) << strategy;
    EXPECT_FALSE(at::equal(many[1].statistics, many[0].statistics)) << "each rank has seen its own samples";
  }
}

}  // namespace
}  // namespace phalanx
