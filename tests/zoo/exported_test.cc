// SPDX-License-Identifier: Apache-2.0
// Runs programs of torch.export in C++: they must have the losses of Python, and unsuitable programs are refused.
// tests/zoo/goldens/make_exported.py writes the programs and losses.golden.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/storage/stored_zip.h"
#include "framework/parallel/random_rows.h"
#include "models/model.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::make_model;
using ::testing::ThrowsMessage;

const std::string kFolder = "tests/zoo/exported/";
const SampleSpec kImages = classification_samples({1, 8, 8}, 5), kText = language_samples(8, 16);

std::shared_ptr<Model> load(const std::string& file, const SampleSpec& sample) {
  return make_model("{name: exported, file: " + file + "}", sample);
}

std::shared_ptr<Model> load(const std::string& name) {
  return load(kFolder + name + ".pt2", name == "gpt2" ? kText : kImages);
}

std::vector<double> golden(const std::string& name) {
  std::ifstream file(kFolder + "losses.golden");
  std::vector<double> values;
  std::string of;
  double value = 0;
  while (file >> of >> value) {
    if (of == name) values.push_back(value);
  }
  return values;
}

void fill_as_python(const Model& model) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : model.named_parameters()) {
    double k = 0;
    for (const char letter : name) k += letter;
    at::Tensor values = 0.2 * (1.7 * at::arange(tensor.numel(), at::kDouble) + k).sin();
    if (tensor.dim() == 1 && name.ends_with("weight")) values += 1;
    auto own = tensor;
    own.copy_(values.view(tensor.sizes()));
  }
}

std::pair<at::Tensor, at::Tensor> batch_for(const std::string& name) {
  if (name == "gpt2") {
    const at::Tensor tokens = ((at::arange(32, at::kLong) * 7) % 16).view({4, 8});
    return {tokens, (tokens + 1) % 16};
  }
  return {(0.37 * at::arange(384, at::kDouble)).sin().to(at::kFloat).view({6, 1, 8, 8}), at::arange(6, at::kLong) % 5};
}

double step(Model& model, const std::string& name) {
  const auto [inputs, targets] = batch_for(name);
  const at::Tensor logits = model.forward(inputs);
  const at::Tensor loss = at::cross_entropy_loss(logits.flatten(0, -2), targets.flatten());
  for (auto& parameter : model.parameters()) parameter.mutable_grad().reset();
  loss.backward();
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.sub_(parameter.grad(), 0.05);
  return loss.item<double>();
}

class Exported : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Each, Exported, ::testing::Values("convnet", "mlp", "gpt2"),
                         [](const auto& info) { return info.param; });

TEST_P(Exported, TrainsAndEvaluatesAsInPython) {
  const auto model = load(GetParam());
  fill_as_python(*model);
  model->train();
  at::manual_seed(7);
  const auto expected = golden(GetParam());
  ASSERT_EQ(expected.size(), 20u);
  for (const double loss : expected) EXPECT_NEAR(step(*model, GetParam()), loss, 1e-4);
  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor outputs = model->forward(batch_for(GetParam()).first);
  EXPECT_NEAR(outputs.to(at::kDouble).square().mean().item<double>(), golden(GetParam() + "_evaluation").at(0), 1e-4);
}

// convnet is not tested: its forward computes a mean over the batch.
TEST(ExportedRows, AreEvaluatedIndependently) {
  const at::NoGradGuard no_grad;
  for (const char* name : {"mlp", "gpt2"}) {
    const auto model = load(name);
    model->eval();
    const at::Tensor inputs = batch_for(name).first;
    const at::Tensor all = model->forward(inputs), one = model->forward(inputs.narrow(0, 1, 1));
    EXPECT_TRUE(at::allclose(all.narrow(0, 1, 1), one, 1e-5, 1e-6)) << name;
  }
}

TEST(ExportedDropout, DropsTheSameHoweverABatchIsSplit) {
  const auto model = load("mlp");
  fill_as_python(*model);
  model->train();
  const at::NoGradGuard no_grad;
  const at::Tensor inputs = batch_for("mlp").first;
  const auto rows = [&](std::int64_t begin, std::int64_t count) {
    const RandomRows scope(RandomKey{.step = 5, .first_row = begin});
    return model->forward(inputs.narrow(0, begin, count));
  };
  const at::Tensor all = rows(0, 6);
  EXPECT_TRUE(at::allclose(all.narrow(0, 2, 4), rows(2, 4), 1e-5, 1e-6));
  EXPECT_FALSE(at::allclose(all.narrow(0, 2, 4), model->forward(inputs.narrow(0, 2, 4)))) << "nothing was dropped";
}

TEST(ExportedBatchNorm, UpdatesItsBuffersOnlyInTraining) {
  const auto model = load("convnet");
  const auto state = [&] {
    std::map<std::string, at::Tensor> buffers;
    for (const auto& [name, tensor] : model->named_buffers()) buffers.emplace(name, tensor.clone());
    return buffers;
  };
  const auto before = state();
  ASSERT_EQ(before.size(), 3u);
  model->eval();
  model->forward(batch_for("convnet").first);
  for (const auto& [name, tensor] : state()) EXPECT_TRUE(at::equal(tensor, before.at(name))) << name;
  model->train();
  model->forward(batch_for("convnet").first);
  for (const auto& [name, tensor] : state()) EXPECT_FALSE(at::equal(tensor, before.at(name))) << name;
}

TEST(ExportedBatch, IsPaddedIfTooSmallUnlessBatchNormTrainsOnIt) {
  const auto model = load("convnet");
  const at::Tensor one = batch_for("convnet").first.narrow(0, 0, 1);
  model->train();
  EXPECT_THAT([&] { model->forward(one); }, ThrowsMessage<ConfigError>(HasSubstr("takes at least 2 samples")));
  model->eval();
  EXPECT_EQ(model->forward(one).sizes(), (std::vector<std::int64_t>{1, 5}));
}

TEST(ExportedBatch, PaddingHasNoWeightInTraining) {
  const auto model = load("mlp");
  fill_as_python(*model);
  model->train();
  const at::Tensor inputs = batch_for("mlp").first;
  const auto gradients_of_first = [&](std::int64_t rows) {
    const RandomRows scope(RandomKey{.step = 5, .first_row = 0});  // so dropout drops the same elements
    std::vector<at::Tensor> gradients;
    for (const auto& parameter : model->parameters()) at::Tensor(parameter).mutable_grad() = at::Tensor();
    model->forward(inputs.narrow(0, 0, rows)).narrow(0, 0, 1).square().sum().backward();
    for (const auto& parameter : model->parameters()) gradients.push_back(parameter.grad());
    return gradients;
  };
  const auto padded = gradients_of_first(1), whole = gradients_of_first(3);
  ASSERT_FALSE(padded.empty());
  for (std::size_t i = 0; i < padded.size(); ++i) EXPECT_TRUE(at::allclose(padded[i], whole[i], 1e-5, 1e-7)) << i;
}

// Copies the program mlp with `what` replaced by `by` in its graph, or in the layouts of its weights.
std::string changed(const std::string& what, const std::string& by, const std::string& record = "models/model.json") {
  const StoredZip original(kFolder + "mlp.pt2");
  const std::string path = ::testing::TempDir() + "/changed.pt2";
  StoredZipWriter copy(path);
  for (const auto& entry : original.entries()) {
    std::string content = original.read(entry);
    if (entry.name.ends_with(record)) {
      const auto place = content.find(what);
      EXPECT_NE(place, std::string::npos) << what;
      content.replace(place, what.size(), by);
    }
    copy.add(entry.name, content);
  }
  write_atomically(path, copy.finish());
  return path;
}

void expect_refused(const std::string& path, const std::string& why) {
  EXPECT_THAT([&] { load(path, kImages); }, ThrowsMessage<ConfigError>(AllOf(HasSubstr(path), HasSubstr(why)))) << why;
}

TEST(ExportedFile, MustHaveTheSupportedSchema) {
  const auto path = changed("\"major\": 8", "\"major\": 9");
  EXPECT_THAT([&] { load(path, kImages); }, ThrowsMessage<ConfigError>(HasSubstr("has schema version 9, not 8")));
}

TEST(ExportedFile, MustBePresentAndComplete) {
  const auto path = ::testing::TempDir() + "/half.pt2";
  const std::string whole = read_file(kFolder + "mlp.pt2");
  write_atomically(path, whole.substr(0, whole.size() / 2));
  EXPECT_THAT([&] { load(path, kImages); }, ThrowsMessage<ConfigError>(HasSubstr("cannot be read as a program")));
  EXPECT_THAT([&] { load("none.pt2", kImages); }, ThrowsMessage<ConfigError>(HasSubstr("none.pt2")));
}

TEST(ExportedFile, NamesANodeThatIsNotSupportedAndItsLineOfPython) {
  const auto path = changed("torch.ops.aten.tanh.default", "torch.ops.aten.tank.default");
  EXPECT_THAT(
      [&] { load(path, kImages); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("the node tanh"), HasSubstr("make_exported.py"), HasSubstr("line 4"),
                                       HasSubstr("aten.tank.default is not an operator"))));
}

TEST(ExportedFile, MustHaveNoControlFlow) {
  const auto path = changed("torch.ops.aten.tanh.default", "torch.ops.higher_order.cond");
  EXPECT_THAT([&] { load(path, kImages); },
              ThrowsMessage<ConfigError>(AllOf(HasSubstr("the node tanh"), HasSubstr("higher_order.cond"))));
}

TEST(ExportedFile, MayOnlyCallOperatorsThatCompute) {
  for (const std::string name : {"aten.from_file.default", "aten.set_.source_Tensor", "aten.resize_.default",
                                 "aten._unsafe_view.default", "aten.as_strided_.default", "aten.save.default",
                                 "prims.view_of.default", "prim.Print.default", "c10d.barrier.default"}) {
    EXPECT_THAT([&] { load(changed("torch.ops.aten.tanh.default", "torch.ops." + name), kImages); },
                ThrowsMessage<ConfigError>(AllOf(HasSubstr("the node tanh"), HasSubstr(name))))
        << name;
  }
  expect_refused(changed("torch.ops.aten.tanh.default", "torch.ops.aten.set_.source_Tensor"),
                 "is not among the operators that a program from a file may call");
}

TEST(ExportedFile, TakesOnlyTheTextsThatOperatorsKnow) {
  const auto with_mode = [](const std::string& mode) {
    return changed("\"target\": \"torch.ops.aten.tanh.default\", \"inputs\": [",
                   "\"target\": \"torch.ops.aten.gelu.default\", \"inputs\": [{\"name\": \"approximate\", \"arg\": "
                   "{\"as_string\": \"" +
                       mode + "\"}, \"kind\": 1}, ");
  };
  EXPECT_NO_THROW(load(with_mode("tanh"), kImages));
  expect_refused(with_mode("/etc/passwd"), "has \"/etc/passwd\" as approximate, which is not supported");
}

TEST(ExportedFile, MustBeWellFormedAndIsNamedOtherwise) {
  expect_refused(changed("\"input_specs\": [", "\"input_specs\": [{}, "), "a value of one kind is expected");
  expect_refused(changed("\"output_specs\": [", "\"output_specs\": [{}, "), "a value of one kind is expected");
  expect_refused(changed("\"outputs\": [{", "\"outputs\": [], \"others\": [{"), "0 outputs, but its signature");
  expect_refused(changed("{", "{\"x\": " + std::string(100'000, '[')), "nested deeper than 256 levels");
}

TEST(ExportedFile, MustHavePossibleLayouts) {
  const std::string weights = "model_weights_config.json";
  expect_refused(changed("\"sizes\": [{\"as_int\": ", "\"sizes\": [{\"as_int\": -", weights), "which is negative");
  expect_refused(changed("\"strides\": [{\"as_int\": ", "\"strides\": [{\"as_int\": -", weights), "which is negative");
  expect_refused(changed("\"storage_offset\": {\"as_int\": 0", "\"storage_offset\": {\"as_int\": -1", weights),
                 "which is negative");
  expect_refused(
      changed("\"storage_offset\": {\"as_int\": 0", "\"storage_offset\": {\"as_int\": 9223372036854775807", weights),
      "has more elements than");
  expect_refused(changed("\"strides\": [", "\"strides\": [{\"as_int\": 1}, ", weights),
                 "different numbers of strides and sizes");
}

TEST(ExportedFile, MustHaveIntactWeights) {
  const auto path = ::testing::TempDir() + "/damaged.pt2";
  std::string bytes = read_file(kFolder + "mlp.pt2");
  const auto record = bytes.find("data/weights/weight_0");
  ASSERT_NE(record, std::string::npos);
  bytes[record + 200] ^= 1;
  write_atomically(path, bytes);
  expect_refused(path, "do not match their checksum");
}

TEST(ExportedFile, MustSuitTheDataset) {
  EXPECT_THAT([&] { load(kFolder + "mlp.pt2", classification_samples({3, 8, 8}, 5)); },
              ThrowsMessage<ConfigError>(HasSubstr("its input image is [n, 1, 8, 8] Float")));
  EXPECT_THAT([&] { load(kFolder + "mlp.pt2", classification_samples({1, 8, 8}, 6)); },
              ThrowsMessage<ConfigError>(HasSubstr("is [n, 5] Float, but the task's")));
  EXPECT_THAT([&] { load(kFolder + "gpt2.pt2", kImages); }, ThrowsMessage<ConfigError>(HasSubstr("[n, 8] Long")));
}

}  // namespace
}  // namespace phalanx
