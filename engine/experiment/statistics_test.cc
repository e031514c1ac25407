// SPDX-License-Identifier: Apache-2.0
// Tests the source of a model's buffers: in training, in tests, and in saved weights.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "engine/testing/run.h"
#include "framework/base/storage/safetensors.h"
#include "models/model.h"

namespace phalanx {
namespace {

using testing::Changes;
using testing::Finished;
using testing::metric;

const Changes kNorms{"model=norms_under_test"};

std::map<std::string, at::Tensor> named(const Model& model) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, parameter] : model.named_parameters()) tensors[name] = parameter;
  for (const auto& [name, buffer] : model.named_buffers()) tensors[name] = buffer;
  return tensors;
}

at::Tensor buffer(const Finished& run, std::size_t rank, const std::string& name) {
  return named(*run.results.at(rank).model).at(name);
}

// Each model is made with a different number.
TEST(Statistics, StartFromRank0) {
  const auto two = testing::run_tiny(2, testing::new_folder(), kNorms);
  EXPECT_TRUE(at::equal(buffer(two, 0, "number"), buffer(two, 1, "number")));
}

TEST(Statistics, AreKeptAsTheMeanOverTheRanks) {
  const auto two = testing::run_tiny(2, testing::new_folder(), kNorms);
  const NamedTensors kept = load_safetensors(two.folder.weights());
  const std::map<std::string, at::Tensor> by_name(kept.begin(), kept.end());
  for (const std::string name : {"norm.running_mean", "norm.running_var"}) {
    const at::Tensor first = buffer(two, 0, name), second = buffer(two, 1, name);
    EXPECT_FALSE(at::equal(first, second)) << name << " is each rank's own";
    EXPECT_TRUE(at::equal(by_name.at(name), (first + second) / 2)) << name;
  }
}

// The fourth batch has four samples, so that the last of five ranks has no sample.
TEST(Statistics, StayUnchangedOnARankWithoutSamples) {
  const auto after = [](int steps) {
    Changes changes = kNorms;
    changes.push_back("train.max_steps=" + std::to_string(steps));
    return testing::run_tiny(5, testing::new_folder(), changes);
  };
  const auto three = after(3), four = after(4);
  for (const std::string name : {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}) {
    for (const std::size_t rank : {0, 1, 2, 3}) {
      EXPECT_FALSE(at::equal(buffer(four, rank, name), buffer(three, rank, name))) << name << " of rank " << rank;
    }
    EXPECT_TRUE(at::equal(buffer(four, 4, name), buffer(three, 4, name))) << name;
  }
}

// A checkpoint's buffers are the ones of the test at the same step. A run that resumes on another number of ranks
// starts with them.
TEST(Statistics, ACheckpointKeepsTheMeanAndEachRanksOwn) {
  Changes saved = kNorms;
  saved.insert(saved.end(), {"train.max_steps=5", "checkpoint.every_steps=5"});
  const auto two = testing::run_tiny(2, testing::new_folder(), saved);
  const auto checkpoint = two.folder.checkpoints() + "/step-00000005";
  const NamedTensors weights = load_safetensors(checkpoint + "/weights-00001-of-00002.safetensors");
  const std::map<std::string, at::Tensor> by_name(weights.begin(), weights.end());
  const auto resumed = [&](int ranks) {
    Changes changes = saved;
    changes.push_back("checkpoint.resume=" + checkpoint);
    return testing::run_tiny(ranks, testing::new_folder(), changes);
  };
  const auto same = resumed(2), three = resumed(3);
  EXPECT_THAT(same.began_after, ::testing::Each(5));
  EXPECT_THAT(three.began_after, ::testing::Each(5));
  for (const std::string name : {"norm.running_mean", "norm.running_var"}) {
    const at::Tensor mean = (buffer(two, 0, name) + buffer(two, 1, name)) / 2;
    EXPECT_FALSE(at::equal(buffer(two, 0, name), mean)) << name;
    EXPECT_TRUE(at::equal(by_name.at(name), mean)) << name;
    for (const std::size_t rank : {0, 1}) EXPECT_TRUE(at::equal(buffer(same, rank, name), buffer(two, rank, name)));
    for (const std::size_t rank : {0, 1, 2}) EXPECT_TRUE(at::allclose(buffer(three, rank, name), mean, 1e-6)) << name;
  }
}

// The reported test result is the result of the saved weights.
TEST(Statistics, TestsUseTheModelThatIsSaved) {
  for (const int ranks : {2, 3}) {
    const auto run = testing::run_tiny(ranks, testing::new_folder(), kNorms);
    auto& model = *run.results[0].model;
    const at::NoGradGuard no_grad;
    const auto tensors = named(model);
    for (const auto& [name, values] : load_safetensors(run.folder.weights())) tensors.at(name).copy_(values);
    model.eval();
    const auto test = testing::tiny_config(kNorms).dataset.make().test;
    std::vector<std::int64_t> all(static_cast<std::size_t>(test->size()));
    std::iota(all.begin(), all.end(), 0);
    Batch batch;
    test->gather(all, 0, batch);
    const double hits = model.forward(batch.inputs[0]).argmax(1).eq(batch.targets[0]).sum().item<double>();
    EXPECT_NEAR(metric(run.results[0].test, "accuracy"), hits / static_cast<double>(test->size()), 1e-9) << ranks;
  }
}

}  // namespace
}  // namespace phalanx
