// What every registered model does, and what is known of single ones.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/checkpoint/safetensors.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "models/model.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const SampleSpec kSample{.input = {1, 28, 28}, .classes = 10};

std::shared_ptr<Model> make(const std::string& name, const SampleSpec& sample = kSample, std::uint64_t seed = 1) {
  at::manual_seed(seed);
  return Models::Choice(name).make(sample);
}

NamedTensors state_of(const Model& model) {
  NamedTensors state;
  for (const auto& parameter : model.named_parameters()) state.emplace_back(parameter.key(), parameter.value());
  for (const auto& buffer : model.named_buffers()) state.emplace_back(buffer.key(), buffer.value());
  return state;
}

std::int64_t parameters_of(const Model& model) {
  std::int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  return count;
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : state_of(model)) names.push_back(name);
  return names;
}

at::Tensor some_input(std::int64_t rows) {
  at::manual_seed(7);
  return at::randn({rows, 1, 28, 28});
}

class Zoo : public ::testing::TestWithParam<std::string> {
 protected:
  // The loss before a step of gradient descent.
  static double train_step(Model& model, const at::Tensor& input, const at::Tensor& target) {
    model.train();
    const at::Tensor loss = at::cross_entropy_loss(model.forward(input), target);
    model.zero_grad();
    loss.backward();
    const at::NoGradGuard no_grad;
    for (auto& parameter : model.parameters()) parameter.sub_(parameter.grad(), 0.02);
    return loss.item<double>();
  }

  static at::Tensor output(Model& model, const at::Tensor& input) {
    const at::NoGradGuard no_grad;
    model.eval();
    return model.forward(input);
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

  const at::Tensor input_ = some_input(8);
  const at::Tensor target_ = at::arange(8, at::kLong);
};

INSTANTIATE_TEST_SUITE_P(EveryModel, Zoo, ::testing::ValuesIn(Models::global().names()), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST_P(Zoo, GivesLogitsForAnyNumberOfSamples) {
  const auto model = make(GetParam());
  for (const std::int64_t rows : {1, 3}) {
    EXPECT_EQ(output(*model, some_input(rows)).sizes(), (at::IntArrayRef{rows, kSample.classes}));
  }
}

TEST_P(Zoo, TwoStepsOfTrainingMakeTheLossSmaller) {
  const auto model = make(GetParam());
  const double first = train_step(*model, input_, target_);
  const double second = train_step(*model, input_, target_);
  const double third = train_step(*model, input_, target_);
  EXPECT_LT(second, first);
  EXPECT_LT(third, second);
}

TEST_P(Zoo, EveryParameterTakesPartInTraining) {
  const auto model = make(GetParam());
  train_step(*model, input_, target_);
  for (const auto& parameter : model->named_parameters()) {
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    EXPECT_TRUE(parameter.value().grad().isfinite().all().item<bool>()) << parameter.key();
    EXPECT_TRUE(parameter.value().grad().ne(0).any().item<bool>()) << parameter.key();
  }
}

TEST_P(Zoo, IsTheSameAfterSavingAndLoading) {
  const std::string path = ::testing::TempDir() + "/weights.safetensors";
  const auto trained = make(GetParam());
  train_step(*trained, input_, target_);
  train_step(*trained, input_, target_);
  save_safetensors(path, state_of(*trained));
  const auto fresh = make(GetParam(), kSample, 2);
  EXPECT_FALSE(at::equal(output(*fresh, input_), output(*trained, input_))) << "another seed, not trained";
  copy_state(*fresh, load_safetensors(path));
  EXPECT_TRUE(at::equal(output(*fresh, input_), output(*trained, input_)));
}

TEST_P(Zoo, NamesItsParametersAndBuffersUniquely) {
  const auto names = names_of(*make(GetParam()));
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_FALSE(names.empty());
}

TEST_P(Zoo, TheSeedDecidesTheInitialValues) {
  const auto first = state_of(*make(GetParam())), same = state_of(*make(GetParam()));
  const auto other = state_of(*make(GetParam(), kSample, 2));
  bool differs = false;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_TRUE(at::equal(first[i].second, same.at(i).second)) << first[i].first;
    differs |= !at::equal(first[i].second, other.at(i).second);
  }
  EXPECT_TRUE(differs);
}

TEST_P(Zoo, ParametersAreOfOneDtypeAndDense) {
  for (const auto& parameter : make(GetParam())->named_parameters()) {
    EXPECT_EQ(parameter.value().scalar_type(), at::kFloat) << parameter.key();
    EXPECT_TRUE(parameter.value().is_contiguous()) << parameter.key();
    EXPECT_TRUE(parameter.value().is_leaf()) << parameter.key();
  }
}

TEST(LeNet, HasTheParametersOfThePaper) {
  const auto model = make("lenet");
  EXPECT_EQ(parameters_of(*model), 61'706);
  EXPECT_THAT(names_of(*model), ElementsAre("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
                                            "fc1.bias", "fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"));
}

TEST(LeNet, FitsImagesOfOtherSizesAndChannels) {
  const auto model = make("lenet", {.input = {3, 12, 33}, .classes = 4});
  EXPECT_EQ(model->forward(at::randn({2, 3, 12, 33})).sizes(), (at::IntArrayRef{2, 4}));
}

TEST(LeNet, RefusesWhatIsTooSmallOrNoImage) {
  const auto refused = ThrowsMessage<ConfigError>(HasSubstr("at least 12 x 12 pixels"));
  EXPECT_THAT([] { make("lenet", {.input = {1, 11, 28}, .classes = 10}); }, refused);
  EXPECT_THAT([] { make("lenet", {.input = {1, 28, 11}, .classes = 10}); }, refused);
  EXPECT_THAT([] { make("lenet", {.input = {784}, .classes = 10}); }, refused);
}

struct Root {
  Models::Choice model{"mlp"};
  template <class V>
  void visit(V& v) {
    v("model", model, "under test");
  }
};

std::shared_ptr<Model> make_mlp(const std::string& hidden) {
  Root root;
  config::load_text(root, "model: {name: mlp, hidden: " + hidden + "}", "test.yaml");
  return root.model.make(kSample);
}

TEST(Mlp, HasAWeightAndABiasPerLayer) {
  const auto model = make("mlp");
  EXPECT_EQ(parameters_of(*model), 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_THAT(names_of(*model), ElementsAre("fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"));
}

TEST(Mlp, HasTheHiddenLayersOfItsConfig) {
  EXPECT_EQ(parameters_of(*make_mlp("[]")), 784 * 10 + 10) << "a linear classifier";
  EXPECT_EQ(parameters_of(*make_mlp("[3, 5]")), 784 * 3 + 3 + 3 * 5 + 5 + 5 * 10 + 10);
  EXPECT_THROW(make_mlp("[3, 0]"), ConfigError);
}

TEST(Mlp, TakesSamplesOfAnyShape) {
  const auto model = make("mlp", {.input = {2, 3, 5, 7}, .classes = 4});
  EXPECT_EQ(model->forward(at::randn({6, 2, 3, 5, 7})).sizes(), (at::IntArrayRef{6, 4}));
}

}  // namespace
}  // namespace phalanx
