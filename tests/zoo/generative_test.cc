// SPDX-License-Identifier: Apache-2.0
// Compares generative models and their losses with values that tests/zoo/goldens/make_generative.py writes.
#include "models/generative.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <map>
#include <sstream>
#include <string>

#include "engine/task/task.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "models/weights_layout.h"
#include "tests/zoo/golden.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

SampleSpec images(std::int64_t side, std::int64_t noise, std::int64_t channels = 1) {
  return {.inputs = {{.name = "image", .shape = {channels, side, side}}, {.name = "noise", .shape = {noise}}},
          .targets = {},
          .task = ""};
}

struct GenerativeGolden {
  std::map<std::string, std::pair<double, double>> steps;
  std::map<std::string, std::string> layouts;
  std::map<std::string, std::int64_t> counts;
};

GenerativeGolden generative_golden() {
  GenerativeGolden all;
  for (const auto& line : testing::golden_lines("tests/zoo/generative.golden")) {
    const auto &kind = line.text(1), &name = line.text(2);
    if (kind == "step") {
      all.steps[name] = {line.value(3), line.value(4)};
    } else if (kind == "count") {
      all.counts[name] = std::stoll(line.text(3));
    } else {
      all.layouts[name] += line.text(3) + " " + line.text(4) + "\n";
    }
  }
  return all;
}

std::unique_ptr<Task> make_task(const std::string& section, const SampleSpec& sample) {
  return config::load_as<Tasks::Choice>("task", section, "test.yaml").make(sample, nullptr);
}

std::shared_ptr<Model> make_model(const std::string& section, const ModelSpec& spec) {
  return config::load_as<Models::Choice>("model", section, "test.yaml").make(spec);
}

constexpr const char* kVae = "{name: vae, hidden: [12, 7]}";
constexpr const char* kDcgan = "{name: dcgan, width: 4}";

void expect_as_golden(const std::string& name, const std::string& model_section, Task& task) {
  const auto [before, after] = generative_golden().steps.at(name);
  const auto model = make_model(model_section, task.model());
  weights_to_double(*model);
  testing::fill(*model);
  Batch batch{.inputs = {testing::waves({3, 1, 28, 28}).to(at::kDouble), testing::waves({3, 5}).to(at::kDouble)}};
  task.prepare(batch);
  const auto loss = [&] { return task.mean_loss(task.predictions(model->outputs(batch.inputs)), batch); };
  const at::Tensor first = loss();
  EXPECT_NEAR(first.item<double>(), before, 1e-4 * before) << name;
  first.backward();
  const at::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) {
    if (parameter.grad().defined()) parameter.sub_(parameter.grad(), 0.01);
  }
  EXPECT_NEAR(loss().item<double>(), after, 1e-4 * after) << name;
}

TEST(Vae, ComputesAndLearnsAsTorchs) {
  const auto sample = images(28, 5);
  const auto bernoulli = make_task("variational", sample);
  const auto gaussian = make_task("{name: variational, likelihood: gaussian, beta: 0.5}", sample);
  expect_as_golden("vae bernoulli", kVae, *bernoulli);
  expect_as_golden("vae gaussian", kVae, *gaussian);
  EXPECT_EQ(testing::layout_of(*make_model(kVae, bernoulli->model())), generative_golden().layouts.at("vae"));
}

TEST(Dcgan, ComputesAndLearnsAsPyTorchsExampleInBothTurns) {
  const auto task = make_task("adversarial", images(28, 5));
  for (std::size_t turn = 0; turn < 2; ++turn) {
    task->take_turn(turn);
    expect_as_golden("dcgan " + task->turns()[turn].name, kDcgan, *task);
  }
  std::string layout;  // without the buffers of batch norm
  std::istringstream lines(testing::layout_of(*make_model(kDcgan, task->model())));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("running") == std::string::npos && line.find("tracked") == std::string::npos) layout += line + "\n";
  }
  EXPECT_EQ(layout, generative_golden().layouts.at("dcgan"));
}

TEST(Dcgan, HasAsManyParametersAsPyTorchsExample) {
  const auto model = make_model("dcgan", make_task("adversarial", images(64, 100, 3))->model());
  std::map<std::string, std::int64_t> counts;
  for (const auto& [name, tensor] : model->named_parameters()) counts[name.substr(0, name.find('.'))] += tensor.numel();
  EXPECT_EQ(counts, generative_golden().counts);
}

TEST(Generative, SamplesAreInTheUnitsOfTheDataset) {
  const at::NoGradGuard no_grad;
  const auto sample = images(28, 5);
  const auto drawn = [&](const std::string& model_section, const std::string& task_section) {
    const auto task = make_task(task_section, sample);
    const auto model = make_model(model_section, task->model());
    testing::fill(*model);
    model->eval();
    auto& generative = *as<Generative>(*model);
    const at::Tensor made = generative.samples(10 * testing::waves({4, 5}));
    EXPECT_EQ(made.sizes(), (at::IntArrayRef{4, 1, 28, 28}));
    return std::pair(made.min().item<double>(), made.max().item<double>());
  };
  const auto bernoulli = drawn(kVae, "variational");
  EXPECT_GT(bernoulli.first, 0);
  EXPECT_LT(bernoulli.second, 1);
  EXPECT_LT(drawn(kVae, "{name: variational, likelihood: gaussian}").first, 0);
  const auto tanh = drawn(kDcgan, "adversarial");
  EXPECT_GE(tanh.first, -1);
  EXPECT_LE(tanh.second, 1);
  EXPECT_LT(tanh.first, 0);
}

TEST(Generative, RefuseWhatDoesNotFit) {
  const auto refused = [](const std::string& message) { return ThrowsMessage<ConfigError>(HasSubstr(message)); };
  const auto labelled = classification_samples({1, 28, 28}, 10);
  for (const char* task : {"variational", "adversarial"}) {
    EXPECT_THAT([&] { make_task(task, labelled); }, refused("use the dataset {name: with_noise, of: {name: ...}}"));
    EXPECT_THAT([&] { Tasks::Choice(task).make(images(28, 5), Losses::Choice("mse").make()); },
                refused("has a loss function of its own"));
  }
  for (const char* model : {"vae", "dcgan"}) {
    EXPECT_THAT([&] { testing::make_model(model, labelled); },
                refused(std::string("model ") + model + " needs the task"));
  }
  for (const std::int64_t side : {7, 30, 36}) {
    EXPECT_THAT([&] { make_model("dcgan", make_task("adversarial", images(side, 5))->model()); },
                refused("4 to 7 times a power of 2"));
  }
}

}  // namespace
}  // namespace phalanx
