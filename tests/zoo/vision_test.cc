// SPDX-License-Identifier: Apache-2.0
// Compares vision models with torchvision, timm and transformers. goldens/make_vision.py writes vision.golden and
// describes its contents.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "tests/zoo/golden.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using testing::make_model;

struct Golden : testing::GoldenLine {
  explicit Golden(const GoldenLine& line)
      : GoldenLine(line), name(text(1).substr(7, text(1).find_first_of(",}") - 7)) {}  // from "{name: vgg11}"

  std::string name;
};

std::vector<Golden> goldens() {
  std::vector<Golden> all;
  for (const auto& line : testing::golden_lines("tests/zoo/vision.golden")) all.emplace_back(line);
  return all;
}

SampleSpec samples(const Golden& golden, std::int64_t side, std::int64_t classes) {
  if (golden.name != "unet") return classification_samples({3, side, side}, classes);
  return {.inputs = {{.name = "image", .shape = {3, side, side}}},
          .targets = {{.name = "mask", .shape = {side, side}, .dtype = at::kLong, .classes = classes}},
          .task = "segmentation"};
}

std::string hash_of(const std::string& text) {  // FNV-1a
  std::uint64_t value = 0xCBF29CE484222325;
  for (const char letter : text) value = (value ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  char shown[17];
  std::snprintf(shown, sizeof shown, "%016llx", static_cast<unsigned long long>(value));
  return shown;
}

// The same as fill() of the script.
void fill_in_double(Model& model) {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t kPeriod = 4093;
  const auto i = at::arange(kPeriod, at::kLong);
  const auto base = ((i * i * 2654435761 + i * 40503) % (std::int64_t{1} << 32)).to(at::kDouble) / 4294967296.0 - 0.5;
  const auto wide = base * std::sqrt(12.0);
  std::int64_t k = 0;
  for (const auto& [name, values] : model.named_parameters()) {
    const auto start = 31 * k++ % kPeriod, count = values.numel();
    const auto drawn = wide.repeat({(start + count) / kPeriod + 1}).narrow(0, start, count);
    const auto filled = values.dim() == 1 ? drawn * 0.1 + (name.ends_with("weight") ? 1 : 0)
                                          : drawn / std::sqrt(static_cast<double>(count / values.size(0)));
    at::Tensor(values).set_data(filled.view(values.sizes()));
  }
  for (auto& [name, values] : model.named_buffers()) {
    if (values.is_floating_point()) at::Tensor(values).set_data(values.to(at::kDouble));
  }
}

at::Tensor loss_of(Model& model, const at::Tensor& images) {
  model.train();
  const auto scores = model.forward(images).movedim(1, -1).flatten(0, -2);
  return at::cross_entropy_loss(scores, at::arange(scores.size(0), at::kLong) % scores.size(1));
}

void take_step(Model& model, const at::Tensor& loss) {
  loss.backward();
  const at::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.sub_(parameter.grad(), 0.01);
}

class Vision : public ::testing::TestWithParam<Golden> {};
INSTANTIATE_TEST_SUITE_P(Models, Vision, ::testing::ValuesIn(goldens()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Vision, HasNamesShapesAndInitialValuesOfItsOriginal) {
  const auto& golden = GetParam();
  const bool segments = golden.name == "unet";
  const auto model = make_model(golden.text(1), samples(golden, segments ? 64 : 224, segments ? 2 : 1000), 1);
  EXPECT_EQ(std::to_string(testing::parameters_of(*model)), golden.text(2));
  EXPECT_EQ(hash_of(testing::layout_of(*model)), golden.text(3))
      << "compare with make_vision.py --layout " << golden.name << ":\n"
      << testing::layout_of(*model);
  double first = 0, spread = 0;
  for (const auto& parameter : model->parameters()) {
    first += parameter.flatten()[0].item<double>();
    spread += parameter.abs().mean().item<double>();
  }
  // Only the distribution is the same, not the draws: the others truncate normal numbers differently, and transformers
  // draws in another order.
  const bool redrawn = golden.name.starts_with("convnext") || golden.name.starts_with("vit");
  if (!redrawn) {
    EXPECT_NEAR(first, golden.value(4), 1e-4 * (1 + std::abs(first))) << "the same draws";
  }
  EXPECT_NEAR(spread, golden.value(5), 1e-4 * spread);
}

TEST_P(Vision, ComputesAndLearnsAsItsOriginal) {
  const auto& golden = GetParam();
  const auto side = static_cast<std::int64_t>(golden.value(7));
  const auto model = make_model(golden.text(6), samples(golden, side, golden.name == "unet" ? 3 : 10));
  fill_in_double(*model);
  const auto images = testing::waves({2, 3, side, side}).to(at::kDouble);
  const auto near = [](double expected) { return ::testing::DoubleNear(expected, 1e-5 * (1e-3 + std::abs(expected))); };
  {
    const at::NoGradGuard no_grad;
    model->eval();
    const auto output = model->forward(images).flatten(1);
    const auto expected = golden.values(8);
    EXPECT_THAT(output[0][0].item<double>(), near(expected.at(0)));
    EXPECT_THAT(output[0][-1].item<double>(), near(expected.at(1)));
    EXPECT_THAT(output[1][-1].item<double>(), near(expected.at(2)));
  }
  const auto loss = loss_of(*model, images);
  EXPECT_THAT(loss.item<double>(), near(golden.value(9)));
  take_step(*model, loss);
  EXPECT_THAT(loss_of(*model, images).item<double>(), near(golden.value(10)));
}

}  // namespace
}  // namespace phalanx
