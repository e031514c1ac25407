// SPDX-License-Identifier: Apache-2.0
// Tests models of blocks whose activations are recomputed in backward: the same gradients and statistics, bit for bit.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/parallel/autocast.h"
#include "models/activation_checkpointing.h"
#include "models/block_chain.h"
#include "tests/zoo/model_under_test.h"
#include "tests/zoo/small_models.h"

namespace phalanx {
namespace {

using testing::make_model;

struct Sample {
  std::string section;
  SampleSpec spec;
  at::Tensor batch;
};

Sample sample_of(const std::string& model) {
  if (model == "char_lm") {
    return {"{name: char_lm, layers: 5, heads: 2, width: 16}", language_samples(12, 20),
            (at::arange(3 * 12, at::kLong) % 20).view({3, 12})};
  }
  const std::set<std::string> fit_small_images{"lenet", "mlp", "resnet18"};
  if (fit_small_images.contains(model)) {
    return {model, classification_samples({3, 16, 16}, 10), testing::waves({4, 3, 16, 16})};
  }
  return {testing::small_section(model), classification_samples({3, 64, 64}, 10), testing::waves({2, 3, 64, 64})};
}

// Returns the gradients of all parameters, then buffers, after one forward and backward.
std::vector<at::Tensor> trained(const std::string& name, std::int64_t segments, at::ScalarType dtype) {
  const auto sample = sample_of(name);
  const auto model = make_model(sample.section, sample.spec);
  if (segments > 0) {
    EXPECT_TRUE(as<ActivationCheckpointing>(*model)->checkpoint_activations({.count = segments}));
  }
  // As in training, gradients exist before: layers may add to them.
  for (auto& parameter : model->parameters()) parameter.mutable_grad() = at::zeros_like(parameter);
  model->train();
  at::Tensor output;
  {
    const Autocast autocast(at::kCPU, dtype);
    output = model->forward(sample.batch);
  }
  output = output.to(at::kFloat);
  (output * output).sum().backward();
  std::vector<at::Tensor> all;
  for (const auto& parameter : model->parameters()) all.push_back(parameter.grad());
  for (const auto& buffer : model->buffers()) all.push_back(buffer);
  return all;
}

class Segments : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, Segments, ::testing::Values("char_lm", "resnet18"),
                         [](const auto& info) { return info.param; });

TEST_P(Segments, ComputeTheSameBits) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto kept = trained(GetParam(), 0, dtype);
    for (const std::int64_t segments : {1, 3, 100}) {
      const auto computed = trained(GetParam(), segments, dtype);
      ASSERT_EQ(computed.size(), kept.size());
      for (std::size_t i = 0; i < kept.size(); ++i) {
        EXPECT_TRUE(at::equal(computed[i], kept[i])) << i << " with " << segments << " segments";
      }
    }
  }
}

BlockChain& chain_of(Model& model) {
  auto* const chain = as<BlockChain>(model);
  if (chain == nullptr) throw std::logic_error("the model is not a chain of blocks");
  return *chain;
}

// Returns the names of the parameters that the blocks use, each once.
std::set<std::string> used_by_blocks(Model& model) {
  std::set<std::string> names;
  for (const auto& block : chain_of(model).blocks()) names.insert(block.parameters.begin(), block.parameters.end());
  return names;
}

class Chain : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Models, Chain,
                         ::testing::Values("char_lm", "resnet18", "lenet", "mlp", "alexnet", "vgg11_bn", "densenet121",
                                           "mobilenet_v2", "mobilenet_v3_small", "efficientnet_b0", "convnext_tiny",
                                           "vit", "vit_b_16", "mlp_mixer"),
                         [](const auto& info) { return info.param; });

TEST_P(Chain, ComputesTheModel) {
  const auto sample = sample_of(GetParam());
  const auto model = make_model(sample.section, sample.spec);
  const auto whole = model->forward(sample.batch);
  at::Tensor x = sample.batch;
  for (const auto& block : chain_of(*model).blocks()) x = block.forward(x);
  EXPECT_TRUE(at::equal(x, whole));
  std::set<std::string> names;
  for (const auto& [name, tensor] : model->named_parameters()) names.insert(name);
  EXPECT_EQ(used_by_blocks(*model), names);
}

TEST_P(Chain, RunsEachBlockByItsRunner) {
  const auto sample = sample_of(GetParam());
  const auto model = make_model(sample.section, sample.spec);
  const auto whole = model->forward(sample.batch);
  std::vector<std::string> ran, all;
  chain_of(*model).set_block_runner([&](const Block& block, const at::Tensor& input) {
    ran.push_back(block.name);
    return block.forward(input);
  });
  EXPECT_TRUE(at::equal(model->forward(sample.batch), whole));
  for (const auto& block : chain_of(*model).blocks()) all.push_back(block.name);
  EXPECT_EQ(ran, all);
}

TEST_P(Chain, KeepsOnlyTheChosenBlocks) {
  const auto sample = sample_of(GetParam());
  const auto model = make_model(sample.section, sample.spec), kept = make_model(sample.section, sample.spec);
  const auto& blocks = chain_of(*kept).blocks();
  const auto last = blocks.size() - 1;
  chain_of(*kept).keep_blocks({last});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : kept->named_parameters()) {
    EXPECT_GT(tensor.numel(), 0) << name;
    names.push_back(name);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(blocks[last].parameters));
  at::Tensor x = sample.batch;
  for (std::size_t i = 0; i < last; ++i) x = chain_of(*model).blocks()[i].forward(x);
  EXPECT_TRUE(at::equal(blocks[last].forward(x), chain_of(*model).blocks()[last].forward(x)));
}

TEST(NoSegments, AModelWithoutBlocksBetweenTheFirstAndTheLastSaysSo) {
  const auto mlp = make_model("mlp", classification_samples({4}, 2));
  EXPECT_FALSE(as<ActivationCheckpointing>(*mlp)->checkpoint_activations({.count = 2}));
}

}  // namespace
}  // namespace phalanx
