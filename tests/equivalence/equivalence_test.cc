// Every strategy on every backend against training in one process: equal global batches give equal parameters.
// Linked with one backend at a time; see BUILD.bazel.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>

#include "datasets/loader.h"
#include "engine/experiment/experiment.h"
#include "framework/base/config/config.h"
#include "framework/testing/backend_under_test.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::kBackend;
using testing::run_ranks;

// 50 steps with momentum and weight decay; 77 samples do not divide by 2, 3 or 4, nor 500 by 77.
constexpr const char* kConfig = R"(
name: equivalence
model: MODEL
dataset: {name: digits, train_samples: 500, test_samples: 130}
optimizer: {name: sgd, lr: 0.02, momentum: 0.9, weight_decay: 0.001}
schedule: cosine
strategy: STRATEGY
framework: {bucket_bytes: 64KB}
train: {global_batch_size: 77, epochs: 8, max_steps: 50}
evaluate: {every_epochs: 0, global_batch_size: 64}
watch: {progress: false}
)";

ExperimentConfig config_for(const std::string& model, const std::string& strategy) {
  ExperimentConfig config;
  config::load_text(config, kConfig, "equivalence", {"model=" + model, "strategy=" + strategy});
  return config;
}

std::string scratch(const std::string& name) {
  const char* base = std::getenv("TEST_TMPDIR");
  return std::string(base != nullptr ? base : "/tmp") + "/" + name;
}

struct Trained {
  at::Tensor weights;  // all parameters, one after the other
  Readings test;
};

Trained train(const ExperimentConfig& config, const CommunicatorPtr& world, const std::string& run) {
  at::set_num_threads(1);
  const std::string path = scratch(run);
  if (world->rank() == 0) {
    std::filesystem::remove_all(path);
    RunFolder::create(path);
  }
  world->barrier().wait();
  const RunFolder folder(path);
  const auto result = run_experiment(config, {.world = world, .splits = config.dataset.make(), .folder = folder});
  std::vector<at::Tensor> flat;
  for (const auto& parameter : result.model->parameters()) flat.push_back(parameter.detach().flatten());
  return {at::cat(flat), result.test};
}

double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

using Case = std::tuple<std::string, std::string, int>;  // model, strategy, ranks

class Equivalence : public ::testing::TestWithParam<Case> {
 protected:
  std::string model() const { return std::get<0>(GetParam()); }
  std::string strategy() const { return std::get<1>(GetParam()); }
  int ranks() const { return std::get<2>(GetParam()); }
  std::string run_name(const std::string& suffix) const {
    return std::string(kBackend) + "_" + model() + "_" + strategy() + std::to_string(ranks()) + suffix;
  }
};

INSTANTIATE_TEST_SUITE_P(Strategies, Equivalence,
                         ::testing::Combine(::testing::Values("mlp", "lenet"), ::testing::Values("all_reduce", "overlapped", "sharded"),
                                            ::testing::Values(2, 3, 4)));

// N2, N5, S8: the mean over the global batch, however many ranks share it and however unevenly.
TEST_P(Equivalence, RanksFollowOneProcess) {
  run_ranks(kBackend, ranks(), [this](const CommunicatorPtr& world) {
    const auto alone = world->split(world->rank(), 0);
    const auto suffix = "_alone" + std::to_string(world->rank());
    const Trained one = train(config_for(model(), "single"), alone, run_name(suffix));
    const Trained many = train(config_for(model(), strategy()), world, run_name(""));
    EXPECT_LT(relative_difference(many.weights, one.weights), 1e-5);
    ASSERT_EQ(many.test.size(), one.test.size());
    for (std::size_t i = 0; i < one.test.size(); ++i) {
      EXPECT_NEAR(many.test[i].second, one.test[i].second, 1e-4) << one.test[i].first;
    }
  });
}

// N3: by the bits, so that a changed sign or order would show.
TEST_P(Equivalence, ReplicasAreBitwiseEqual) {
  run_ranks(kBackend, ranks(), [this](const CommunicatorPtr& world) {
    const Trained own = train(config_for(model(), strategy()), world, run_name("_replica"));
    at::Tensor root = own.weights.clone();
    world->broadcast(root, 0).wait();
    EXPECT_TRUE(at::equal(own.weights, root)) << "rank " << world->rank() << " differs from rank 0";
  });
}

TEST_P(Equivalence, TheSameSeedGivesTheSameBitsTwice) {
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
