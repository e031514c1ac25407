// SPDX-License-Identifier: Apache-2.0
// Tests all registered models together, and some of them separately.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/task/task.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/storage/safetensors.h"
#include "framework/testing/file_name.h"
#include "models/activation_checkpointing.h"
#include "models/block_chain.h"
#include "models/context_parallel.h"
#include "models/expert_parallel.h"
#include "models/generative.h"
#include "models/incremental_decoding.h"
#include "models/model.h"
#include "models/sequence_parallel.h"
#include "tests/zoo/model_under_test.h"
#include "tests/zoo/small_models.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_model;
using testing::names_of;
using testing::parameters_of;
using testing::state_of;
using ::testing::ThrowsMessage;

const SampleSpec kSample = classification_samples({1, 28, 28}, 10);

const SampleSpec kText = language_samples(12, 10);

const SampleSpec kClicks{
    .inputs = {{.name = "dense", .shape = {3}}, {.name = "ids", .shape = {4}, .dtype = at::kLong, .classes = 10}},
    .targets = {{.name = "click"}},
    .task = "binary_classification"};

const SampleSpec kLarger = classification_samples({3, 32, 32}, 10), kLarge = classification_samples({3, 64, 64}, 10);

const SampleSpec kReconstructed{.inputs = kSample.inputs, .targets = {}, .task = "reconstruction"};

const std::vector<TensorSpec> kNoisy{{.name = "image", .shape = {1, 28, 28}}, {.name = "noise", .shape = {6}}};
const SampleSpec kVariational{.inputs = kNoisy, .targets = {}, .task = "variational"};
const SampleSpec kAdversarial{.inputs = kNoisy, .targets = {}, .task = "adversarial"};

const SampleSpec kMasks{.inputs = {{.name = "image", .shape = {3, 32, 32}}},
                        .targets = {{.name = "mask", .shape = {32, 32}, .dtype = at::kLong, .classes = 4}},
                        .task = "segmentation"};

const SampleSpec kPairs{.inputs = {kText.inputs[0], kText.inputs[0]}, .targets = kText.targets, .task = kText.task};

const SampleSpec kTriplets{.inputs = {{.name = "images", .shape = {3, 1, 12, 12}}},
                           .targets = {{.name = "classes", .shape = {3}, .dtype = at::kLong, .classes = 3}},
                           .task = "metric_learning"};

const SampleSpec kGraphs{.inputs = {{.name = "features", .shape = {9, 4}}, {.name = "adjacency", .shape = {9, 9}}},
                         .targets = {{.name = "classes", .shape = {9}, .dtype = at::kLong, .classes = 3}},
                         .task = "classification"};

// Returns samples that a model accepts: images, text, members, graphs or clicks.
SampleSpec sample_for(const std::string& name) {
  for (const auto& sample : {kSample, kLarger, kLarge, kText, kPairs, kReconstructed, kMasks, kVariational,
                             kAdversarial, kTriplets, kGraphs}) {
    try {
      make_model(testing::small_section(name), sample);
      return sample;
    } catch (const ConfigError&) {
    }
  }
  return kClicks;
}

Tensors some_inputs(const SampleSpec& sample, std::int64_t rows) {
  at::manual_seed(7);
  Tensors inputs;
  for (const auto& tensor : sample.inputs) {
    auto sizes = tensor.shape;
    sizes.insert(sizes.begin(), rows);
    if (tensor.name == "adjacency") {
      const auto edges = at::randn(sizes);
      inputs.push_back((edges + edges.transpose(1, 2)).gt(0.5).to(at::kFloat));
      continue;
    }
    inputs.push_back(tensor.dtype == at::kLong ? at::randint(tensor.classes, sizes, at::kLong) : at::randn(sizes));
  }
  return inputs;
}

Batch batch_of(const SampleSpec& sample, const Tensors& inputs) {
  Batch batch{.inputs = inputs};
  const auto rows = inputs[0].size(0);
  for (const auto& target : sample.targets) {
    if (sample.task == "binary_classification") {
      batch.targets.push_back(inputs[1].select(1, 0).remainder(2).to(at::kFloat));
    } else if (inputs[0].scalar_type() == at::kLong) {
      batch.targets.push_back((inputs[0] + 1) % target.classes);
    } else {
      auto sizes = target.shape;
      sizes.insert(sizes.begin(), rows);
      const auto all = at::empty(sizes).numel();
      batch.targets.push_back((at::arange(all, at::kLong) % target.classes).view(sizes));
    }
  }
  return batch;
}

class Zoo : public ::testing::TestWithParam<std::string> {
 protected:
  // Takes a step of gradient descent, and returns the loss before it.
  double train_step(Model& model) const {
    model.train();
    const at::Tensor loss = task_->mean_loss(task_->predictions(model.outputs(inputs_)), batch_);
    for (auto& parameter : model.parameters()) parameter.mutable_grad().reset();
    loss.backward();
    const at::NoGradGuard no_grad;
    double square = 0;
    for (const auto& parameter : model.parameters()) square += parameter.grad().square().sum().item<double>();
    // No step is longer than this: deep networks have large initial gradients.
    const double rate = 0.005 / std::max(1.0, std::sqrt(square));
    for (auto& parameter : model.parameters()) parameter.sub_(parameter.grad(), rate);
    return loss.item<double>();
  }

  static Batch prepared(const Task& task, Batch batch) {
    task.prepare(batch);
    return batch;
  }

  static at::Tensor output(Model& model, const Tensors& inputs) {
    const at::NoGradGuard no_grad;
    model.eval();
    return model.outputs(inputs).at(0);
  }

  static void copy_state(Model& model, const NamedTensors& state) {
    const at::NoGradGuard no_grad;
    const auto own = state_of(model);
    ASSERT_EQ(own.size(), state.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      ASSERT_EQ(own[i].first, state[i].first);
      ASSERT_EQ(own[i].second.sizes(), state[i].second.sizes()) << own[i].first;
      own[i].second.copy_(state[i].second);
    }
  }

  std::shared_ptr<Model> make(std::uint64_t seed = 1) const {
    return make_model(testing::small_section(GetParam()), sample_, seed);
  }

  const SampleSpec sample_ = sample_for(GetParam());
  const Tensors inputs_ = some_inputs(sample_, 8);
  const std::unique_ptr<Task> task_ = Tasks::Choice(sample_.task).make(sample_, nullptr);
  const Batch batch_ = prepared(*task_, batch_of(sample_, inputs_));
};

// Programs depend on their files: tests/zoo/exported_test.cc and torchscript_test.cc test them.
std::vector<std::string> models_without_files() {
  auto names = Models::global().names();
  for (const char* program : {"exported", "torchscript"}) std::erase(names, program);
  return names;
}

INSTANTIATE_TEST_SUITE_P(EveryModel, Zoo, ::testing::ValuesIn(models_without_files()),
                         [](const auto& info) { return testing::file_name(info.param); });

TEST_P(Zoo, GivesLogitsForAnyNumberOfSamples) {
  const auto model = make();
  for (const std::int64_t rows : {1, 3}) {
    auto expected = testing::model_spec(sample_).outputs[0].shape;
    expected.insert(expected.begin(), rows);
    EXPECT_EQ(output(*model, some_inputs(sample_, rows)).sizes(), expected);
  }
}

TEST_P(Zoo, TwoStepsOfTrainingMakeTheLossSmaller) {
  const auto model = make();
  const double first = train_step(*model);
  const double second = train_step(*model);
  const double third = train_step(*model);
  EXPECT_LT(second, first);
  EXPECT_LT(third, second);
}

TEST_P(Zoo, EveryParameterTakesPartInTraining) {
  const auto model = make();
  for (int step = 0; step < 2; ++step) train_step(*model);  // a head that starts at 0 blocks the first gradients
  for (const auto& [name, parameter] : model->named_parameters()) {
    ASSERT_TRUE(parameter.grad().defined()) << name;
    EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>()) << name;
    EXPECT_TRUE(parameter.grad().ne(0).any().item<bool>()) << name;
  }
}

TEST_P(Zoo, IsTheSameAfterSavingAndLoading) {
  const std::string path = ::testing::TempDir() + "/weights.safetensors";
  const auto trained = make();
  train_step(*trained);
  train_step(*trained);
  save_safetensors(path, state_of(*trained));
  const auto fresh = make(2);
  EXPECT_FALSE(at::equal(output(*fresh, inputs_), output(*trained, inputs_))) << "another seed, not trained";
  copy_state(*fresh, load_safetensors(path));
  EXPECT_TRUE(at::equal(output(*fresh, inputs_), output(*trained, inputs_)));
}

TEST_P(Zoo, NamesItsParametersAndBuffersUniquely) {
  const auto names = names_of(*make());
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_FALSE(names.empty());
}

TEST_P(Zoo, TheSeedDecidesTheInitialValues) {
  const auto first = state_of(*make()), same = state_of(*make());
  const auto other = state_of(*make(2));
  bool differs = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(at::equal(first[i].second, same.at(i).second)) << first[i].first;
    differs |= !at::equal(first[i].second, other.at(i).second);
  }
  EXPECT_TRUE(differs);
}

TEST_P(Zoo, ParametersAreOfOneDtypeAndDense) {
  for (const auto& [name, parameter] : make()->named_parameters()) {
    EXPECT_EQ(parameter.scalar_type(), at::kFloat) << name;
    EXPECT_TRUE(parameter.is_contiguous()) << name;
    EXPECT_TRUE(parameter.is_leaf()) << name;
  }
}

// Returns the optional interfaces of a model.
ModelTraits interfaces_of(const Model& model) {
  return {.activation_checkpointing = as<ActivationCheckpointing>(model) != nullptr,
          .block_chain = as<BlockChain>(model) != nullptr,
          .context_parallel = as<ContextParallel>(model) != nullptr,
          .expert_parallel = as<ExpertParallel>(model) != nullptr,
          .generative = as<Generative>(model) != nullptr,
          .incremental_decoding = as<IncrementalDecoding>(model) != nullptr,
          .sequence_parallel = as<SequenceParallel>(model) != nullptr};
}

TEST_P(Zoo, HasTheInterfacesOfItsTraits) {
  const auto model = make();
  EXPECT_EQ(interfaces_of(*model), Models::Choice(GetParam()).traits());
  if (auto* const chain = as<BlockChain>(*model)) {
    EXPECT_FALSE(chain->blocks().empty());
  }
}

TEST(Bert, IsAChainUnlessAllLayersNeedThePadding) {
  for (const bool padded : {false, true}) {
    const std::string section =
        std::string("{name: bert, layers: 1, heads: 2, width: 8, padding: ") + (padded ? "0}" : "-1}");
    const auto traits = config::load_as<Models::Choice>("model", section, "test.yaml").traits();
    EXPECT_EQ(interfaces_of(*make_model(section, kText)), traits);
    EXPECT_NE(traits.block_chain, padded);
  }
}

TEST(LeNet, HasTheParametersOfThePaper) {
  const auto model = make_model("lenet", kSample);
  EXPECT_EQ(parameters_of(*model), 61'706);
  EXPECT_THAT(names_of(*model), ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                            "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
}

TEST(LeNet, FitsImagesOfOtherSizesAndChannels) {
  const auto model = make_model("lenet", classification_samples({3, 12, 33}, 4));
  EXPECT_EQ(model->forward(at::randn({2, 3, 12, 33})).sizes(), (at::IntArrayRef{2, 4}));
}

TEST(LeNet, RefusesSamplesThatAreTooSmallOrNotImages) {
  const auto refused = ThrowsMessage<ConfigError>(HasSubstr("at least 12 x 12 pixels"));
  EXPECT_THAT([] { make_model("lenet", classification_samples({1, 11, 28}, 10)); }, refused);
  EXPECT_THAT([] { make_model("lenet", classification_samples({1, 28, 11}, 10)); }, refused);
  EXPECT_THAT([] { make_model("lenet", classification_samples({784}, 10)); }, refused);
  EXPECT_THAT([] { make_model("lenet", kText); }, refused);
}

std::shared_ptr<Model> make_mlp(const std::string& hidden) {
  return make_model("{name: mlp, hidden: " + hidden + "}", kSample);
}

// 4 features of 10 ids in rows of 16; 5 vectors give 10 products.
TEST(Dlrm, HasTheLayersOfThePaper) {
  const auto model = make_model("{name: dlrm, bottom: [8], top: [6]}", kClicks);
  EXPECT_THAT(names_of(*model),
              ElementsAre("bottom.fc1.weight", "bottom.fc1.bias", "bottom.fc2.weight", "bottom.fc2.bias",
                          "top.fc1.weight", "top.fc1.bias", "top.fc2.weight", "top.fc2.bias", "embedding.weight"));
  EXPECT_EQ(parameters_of(*model), 3 * 8 + 8 + 8 * 16 + 16 + (16 + 10) * 6 + 6 + 6 + 1 + 40 * 16);
}

TEST(Dlrm, KeysShareRowsIfThereAreFewerRows) {
  const auto model = make_model("{name: dlrm, bottom: [], top: [], embeddings: {name: local, rows: 7}}", kClicks);
  EXPECT_EQ(parameters_of(*model), 3 * 16 + 16 + (16 + 10) + 1 + 7 * 16);
  EXPECT_EQ(model->outputs(some_inputs(kClicks, 5)).at(0).sizes(), (at::IntArrayRef{5}));
}

TEST(Recommenders, RefuseOtherSamples) {
  const auto refused = ThrowsMessage<ConfigError>(HasSubstr("as in the dataset \"clicks\""));
  EXPECT_THAT([] { make_model("dlrm", kSample); }, refused);
  EXPECT_THAT([] { make_model("two_tower", kText); }, refused);
  EXPECT_THAT([] { make_model("{name: two_tower, user_features: 4}", kClicks); },
              ThrowsMessage<ConfigError>(HasSubstr("leaves none for the item")));
}

TEST(Mlp, HasAWeightAndABiasPerLayer) {
  const auto model = make_model("mlp", kSample);
  EXPECT_EQ(parameters_of(*model), 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_THAT(names_of(*model), ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
}

TEST(Mlp, HasTheHiddenLayersOfItsConfig) {
  EXPECT_EQ(parameters_of(*make_mlp("[]")), 784 * 10 + 10) << "a linear classifier";
  EXPECT_EQ(parameters_of(*make_mlp("[3, 5]")), 784 * 3 + 3 + 3 * 5 + 5 + 5 * 10 + 10);
  EXPECT_THROW(make_mlp("[3, 0]"), ConfigError);
}

TEST(Mlp, TakesSamplesOfAnyShape) {
  const auto model = make_model("mlp", classification_samples({2, 3, 5, 7}, 4));
  EXPECT_EQ(model->forward(at::randn({6, 2, 3, 5, 7})).sizes(), (at::IntArrayRef{6, 4}));
}

TEST(Mlp, RefusesIndices) {
  EXPECT_THAT([] { make_model("mlp", kText); },
              ThrowsMessage<ConfigError>(HasSubstr("model mlp needs numbers, but a sample is [12] indices")));
}

}  // namespace
}  // namespace phalanx
