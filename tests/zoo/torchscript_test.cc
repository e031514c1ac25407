// SPDX-License-Identifier: Apache-2.0
// Tests programs of TorchScript: they must have the losses of the same model in C++, and unsuitable programs are
// refused.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "models/model.h"
#include "models/synchronized_batch_norm.h"
#include "tests/zoo/model_under_test.h"
#include "tests/zoo/scripted.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_model;
using testing::names_of;
using testing::save_scripted;
using testing::ScriptedTensor;
using testing::state_of;
using ::testing::ThrowsMessage;

const SampleSpec kImages = classification_samples({1, 8, 8}, 5), kNumbers = classification_samples({4}, 3);

std::string path_of(const std::string& name) { return ::testing::TempDir() + "/" + name + ".pt"; }

std::shared_ptr<Model> load(const std::string& path, const SampleSpec& sample) {
  return make_model("{name: torchscript, trust: true, file: " + path + "}", sample);
}

const std::vector<ScriptedTensor> kLinear{{.name = "weight", .sizes = {3, 4}}};

// Loads a program for samples of 4 numbers, with a weight [3, 4].
std::shared_ptr<Model> load(const std::string& source, const std::vector<ScriptedTensor>& tensors) {
  const auto path = path_of("net");
  save_scripted(path, tensors, source);
  return load(path, kNumbers);
}

std::shared_ptr<Model> load_source(const std::string& source) { return load(source, kLinear); }

double step(Model& model) {
  const at::Tensor images = (0.37 * at::arange(384, at::kFloat)).sin().view({6, 1, 8, 8});
  const at::Tensor loss = at::cross_entropy_loss(model.forward(images), at::arange(6, at::kLong) % 5);
  for (auto& parameter : model.parameters()) parameter.mutable_grad().reset();
  loss.backward();
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.sub_(parameter.grad(), 0.5);
  return loss.item<double>();
}

TEST(TorchScript, TrainsAsTheSameModelInCpp) {
  testing::save_scripted_mlp(path_of("mlp"), {64, 24, 12, 5});
  const auto script = load(path_of("mlp"), kImages), native = make_model("{name: mlp, hidden: [24, 12]}", kImages);
  EXPECT_EQ(names_of(*script), names_of(*native));
  testing::fill(*script);
  testing::fill(*native);
  for (int i = 0; i < 20; ++i) EXPECT_NEAR(step(*script), step(*native), 1e-4) << i;
  for (std::size_t i = 0; i < state_of(*native).size(); ++i) {  // other kernels may compute it and round differently
    EXPECT_TRUE(at::allclose(state_of(*script)[i].second, state_of(*native)[i].second, 1e-3, 1e-4))
        << state_of(*native)[i].first;
  }
}

TEST(TorchScript, BeginsWithTheValuesInTheFile) {
  const auto model = load_source("def forward(self, x):\n  return torch.linear(x, self.weight)\n");
  EXPECT_TRUE(at::allclose(model->forward(at::ones({2, 4})), at::full({2, 3}, 0.4)));
}

TEST(TorchScript, ModeDecidesOnDropout) {
  const auto model = load_source(
      "def forward(self, x):\n"
      "  return torch.linear(torch.dropout(x, 0.5, self.training), self.weight)\n");
  const at::Tensor x = at::ones({64, 4});
  model->train();
  EXPECT_FALSE(at::equal(model->forward(x), model->forward(x)));
  model->eval();
  EXPECT_TRUE(at::allclose(model->forward(x), at::full({64, 3}, 0.4)));
}

const std::vector<ScriptedTensor> kNorm{
    {.name = "weight", .sizes = {3, 4}},
    {.name = "mean", .sizes = {4}, .is_parameter = false, .requires_grad = false},
    {.name = "variance", .sizes = {4}, .is_parameter = false, .requires_grad = false},
    {.name = "count", .sizes = {}, .is_parameter = false, .requires_grad = false}};

// The form of torch.nn.BatchNorm1d before torch 1.13.
const std::string kNormSource =
    "def forward(self, x):\n"
    "  if self.training:\n"
    "    self.count = self.count + 1\n"
    "  x = torch.batch_norm(x, None, None, self.mean, self.variance, self.training, 0.1, 1e-5, False)\n"
    "  return torch.linear(x, self.weight)\n";

TEST(TorchScript, BuffersStayTheSameTensorsWhereTheProgramReplacesThem) {
  const auto model = load(kNormSource, kNorm);
  ASSERT_THAT(names_of(*model), ElementsAre("weight", "mean", "variance", "count"));
  const auto buffers = model->buffers();
  EXPECT_NEAR(buffers[2].item<double>(), 0.1, 1e-6) << "trying out changed it";
  model->train();
  model->forward(at::ones({2, 4}));
  model->forward(at::ones({2, 4}));
  EXPECT_NEAR(buffers[2].item<double>(), 2.1, 1e-6);
  EXPECT_NEAR(buffers[0][0].item<double>(), 0.9 * (0.9 * 0.1 + 0.1) + 0.1, 1e-6);
  EXPECT_TRUE(model->buffers()[2].is_same(buffers[2]));
  model->eval();
  model->forward(at::ones({2, 4}));
  EXPECT_NEAR(buffers[2].item<double>(), 2.1, 1e-6);
}

TEST(TorchScript, RefusesToSynchronizeBatchNorm) {
  const auto model = load(kNormSource, kNorm);
  EXPECT_THAT([&] { as<SynchronizedBatchNorm>(*model)->synchronize_batch_norm(nullptr); },
              ThrowsMessage<ConfigError>(HasSubstr("whose batch norm sees only one rank")));
}

TEST(TorchScript, ParametersThatAreNotLearnedAreBuffers) {
  const auto model =
      load("def forward(self, x):\n  return torch.linear(x, self.weight, self.bias)\n",
           {{.name = "weight", .sizes = {3, 4}}, {.name = "bias", .sizes = {3}, .requires_grad = false}});
  ASSERT_EQ(model->named_parameters().size(), 1u);
  EXPECT_EQ(model->named_buffers().at(0).first, "bias");
}

// The engine changes precision in the same way.
TEST(TorchScript, ComputesInTheDtypeOfItsParameters) {
  const auto model = load_source("def forward(self, x):\n  return torch.linear(x, self.weight)\n");
  for (auto& parameter : model->parameters()) parameter.set_data(parameter.to(at::kDouble));
  const at::Tensor output = model->forward(at::ones({2, 4}, at::kDouble));
  EXPECT_EQ(output.scalar_type(), at::kDouble);
  output.sum().backward();
  EXPECT_EQ(model->parameters().at(0).grad().scalar_type(), at::kDouble);
}

TEST(TorchScript, GivesATupleAsSeveralOutputs) {
  const auto sample = SampleSpec{.inputs = {{.name = "a", .shape = {4}}, {.name = "b", .shape = {4}}},
                                 .targets = {{.name = "label", .dtype = at::kLong, .classes = 3}},
                                 .task = "classification"};
  const auto path = path_of("two");
  save_scripted(path, kLinear, "def forward(self, a, b):\n  return torch.linear(a + 2 * b, self.weight)\n");
  EXPECT_TRUE(
      at::allclose(load(path, sample)->outputs({at::ones({2, 4}), at::ones({2, 4})}).at(0), at::full({2, 3}, 1.2)));
  EXPECT_THAT([&] { load(path, kNumbers); },
              ThrowsMessage<ConfigError>(HasSubstr("its forward takes 2 tensors, but the task has 1")));
  save_scripted(path, kLinear, "def forward(self, x):\n  x = torch.linear(x, self.weight)\n  return x, x\n");
  EXPECT_THAT([&] { load(path, kNumbers); },
              ThrowsMessage<ConfigError>(HasSubstr("its forward returns 2 tensors, but the task has 1")));
}

struct Refused {
  std::string name, source, why;
};

class TorchScriptRefuses : public ::testing::TestWithParam<Refused> {};

INSTANTIATE_TEST_SUITE_P(
    Each, TorchScriptRefuses,
    ::testing::Values(
        Refused{"AConstantMode",
                "def forward(self, x):\n  return torch.linear(torch.dropout(x, 0.5, False), self.weight)\n",
                "aten::dropout has the constant train=False, so it would not differ between training and evaluation"},
        Refused{
            "ConstantDropoutOfAttention",
            "def forward(self, x):\n  x = x.view(-1, 1, 1, 4)\n  x = torch.scaled_dot_product_attention(x, x, x, None, "
            "0.1)\n  return torch.linear(x.view(-1, 4), self.weight)\n",
            "has a constant dropout_p"},
        Refused{"AssignedParameters",
                "def forward(self, x):\n  self.weight = self.weight * 2\n  return torch.linear(x, self.weight)\n",
                "assigns to the parameter weight"},
        Refused{"StateOutsideOfTensors",
                "def forward(self, x):\n  self.steps = self.steps + 1\n  return torch.linear(x, self.weight)\n",
                "assigns to the attribute steps, which is int and would be in no checkpoint"},
        Refused{"InputsThatAreNoTensors", "def forward(self, x, n: int):\n  return torch.linear(x, self.weight)\n",
                "its forward takes n, which is int and not a tensor"},
        Refused{"OutputsThatAreNoTensors", "def forward(self, x):\n  return {\"out\": torch.linear(x, self.weight)}\n",
                "its forward returns Dict[str, Tensor], but must return a tensor"},
        Refused{"OtherInputs", "def forward(self, x):\n  return torch.linear(x.view(-1, 5), self.weight)\n",
                "its forward fails for a batch of the dataset's shape, [3, 4] Float: "},
        Refused{"OtherOutputs", "def forward(self, x):\n  return torch.linear(x, self.weight)[:, :2]\n",
                "of inputs [3, 4] Float, its output 0 is [3, 2] Float, but the task's"},
        Refused{"AFixedBatch", "def forward(self, x):\n  return torch.linear(x, self.weight).view(1, -1)\n",
                "its output 0 is [1, 9] Float"},
        Refused{"NoGradients", "def forward(self, x):\n  return torch.linear(x, self.weight).detach()\n",
                "its outputs have no gradient"}),
    [](const auto& info) { return info.param.name; });

TEST_P(TorchScriptRefuses, SaysWhy) {
  EXPECT_THAT([&] { load_source(GetParam().source); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("net.pt"), HasSubstr(GetParam().why))));
}

TEST(TorchScriptFile, MustHaveParameters) {
  EXPECT_THAT([&] { load("def forward(self, x):\n  return x\n", std::vector<ScriptedTensor>()); },
              ThrowsMessage<ConfigError>(HasSubstr("has no parameters that require a gradient")));
}

TEST(TorchScriptFile, MustHaveASupportedDtype) {
  const auto path = path_of("half");
  testing::save_scripted_mlp(path, {4, 3}, at::kHalf);
  EXPECT_THAT([&] { load(path, kNumbers); },
              ThrowsMessage<ConfigError>(HasSubstr("the parameter fc1.weight is Half, but training takes float32")));
}

TEST(TorchScriptFile, IsOnlyLoadedWhenTheConfigTrustsIt) {
  const auto path = path_of("untrusted");
  testing::save_scripted_mlp(path, {4, 3}, at::kFloat);
  EXPECT_NO_THROW(load(path, kNumbers));
  EXPECT_THAT([&] { make_model("{name: torchscript, file: " + path + "}", kNumbers); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("model.trust: " + path), HasSubstr("set trust: true"))));
}

TEST(TorchScriptFile, MustExistAndContainAProgram) {
  EXPECT_THAT([] { load("none.pt", kNumbers); }, ThrowsMessage<ConfigError>(HasSubstr("none.pt: cannot be opened")));
  const auto path = path_of("text");
  std::ofstream(path) << "weights";
  EXPECT_THAT([&] { load(path, kNumbers); },
              ThrowsMessage<ConfigError>(HasSubstr("cannot be read as a program of torch.jit.save")));
  EXPECT_THAT([&] { load("tests/zoo/exported/mlp.pt2", kImages); },
              ThrowsMessage<ConfigError>(HasSubstr("are for the model \"exported\"")));
  EXPECT_THAT([] { make_model("torchscript", kNumbers); }, ThrowsMessage<ConfigError>(HasSubstr("model.file: name")));
}

}  // namespace
}  // namespace phalanx
