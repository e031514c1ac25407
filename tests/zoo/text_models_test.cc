// SPDX-License-Identifier: Apache-2.0
// Tests text models against the results of other implementations, which tests/zoo/goldens/make_text.py writes.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/parallel/autocast.h"
#include "models/weights_layout.h"
#include "tests/zoo/golden.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::make_model;
using ::testing::ThrowsMessage;

constexpr std::int64_t kClasses = 11;

const SampleSpec kShortText = language_samples(6, kClasses);

SampleSpec pairs(std::int64_t source_classes = kClasses) {
  auto spec = kShortText;
  spec.inputs.insert(spec.inputs.begin(),
                     {.name = "source", .shape = {6}, .dtype = at::kLong, .classes = source_classes});
  return spec;
}

SampleSpec text_sample_of(const std::string& section) {
  return section.find("transformer") != std::string::npos ? pairs() : kShortText;
}

struct TextGolden {
  struct Step {
    double loss, loss_after, score;
  };
  std::map<std::string, std::int64_t> counts;  // parameters by section
  std::map<std::string, Step> steps;
  std::map<std::string, std::string> layouts;
};

TextGolden text_golden() {
  TextGolden all;
  for (const auto& line : testing::golden_lines("tests/zoo/text.golden")) {
    const auto &kind = line.text(1), &section = line.text(2);
    if (kind == "count") {
      all.counts[section] = std::stoll(line.text(4));
    } else if (kind == "step") {
      all.steps[section] = {line.value(3), line.value(4), line.value(5)};
    } else {
      all.layouts[section] += line.text(3) + " " + line.text(4) + "\n";
    }
  }
  return all;
}

Tensors inputs_of(const std::string& section) {
  if (text_sample_of(section).inputs.size() == 1) return {testing::some_text()};
  return {testing::some_text(), testing::some_text() * 7 % kClasses};
}

// Counts parameters by formula, for sizes that no test allocates.
std::int64_t llama_parameters(std::int64_t layers, std::int64_t width, std::int64_t shared, std::int64_t hidden,
                              std::int64_t rows) {
  return rows * width + layers * (2 * width * width + 2 * width * shared + 3 * width * hidden + 2 * width) + width;
}

std::int64_t bert_parameters(std::int64_t layers, std::int64_t width, std::int64_t context, std::int64_t classes) {
  const auto square = width * width, norm = 2 * width, dense = square + width;
  return (classes + context + 2) * width + norm + layers * (4 * dense + 2 * norm + 8 * square + 5 * width) + classes +
         dense + norm;
}

TEST(TextModels, HaveTheNamesAndShapesOfTheOriginals) {
  const auto expected = text_golden();
  ASSERT_EQ(expected.layouts.size(), 13u);
  for (const auto& [section, layout] : expected.layouts) {
    EXPECT_EQ(testing::layout_of(*make_model(section, text_sample_of(section))), layout) << section;
  }
}

TEST(TextModels, HaveAsManyParametersAsPublished) {
  const auto expected = text_golden();
  const auto text = language_samples(64, 65);
  EXPECT_EQ(expected.counts.at("{name: llama, layers: 32, heads: 32, width: 4096, hidden: 11008}"),
            llama_parameters(32, 4096, 4096, 11008, 2 * 32000));
  EXPECT_EQ(expected.counts.at(
                "{name: llama, layers: 16, heads: 32, key_value_heads: 8, width: 2048, hidden: 8192, tied: true}"),
            llama_parameters(16, 2048, 512, 8192, 128256));
  EXPECT_EQ(testing::parameters_of(*make_model("{name: llama, heads: 4, key_value_heads: 2, hidden: 352}", text)),
            llama_parameters(4, 128, 64, 352, 2 * 65));
  EXPECT_EQ(testing::parameters_of(*make_model("{name: llama, tied: true}", text)),
            llama_parameters(4, 128, 128, 352, 65));
  EXPECT_EQ(expected.counts.at("{name: bert, layers: 12, heads: 12, width: 768}"),
            bert_parameters(12, 768, 512, 30522));
  EXPECT_EQ(testing::parameters_of(*make_model("bert", text)), bert_parameters(4, 128, 64, 65));
}

TEST(TextModels, ComputeAndLearnAsTheOriginals) {
  const auto expected = text_golden();
  ASSERT_EQ(expected.steps.size(), 13u);
  for (const auto& [section, step] : expected.steps) {
    const auto model = make_model(section, text_sample_of(section));
    weights_to_double(*model);
    testing::fill(*model);
    const auto loss = [&](const at::Tensor& scores) {
      return at::cross_entropy_loss(scores.flatten(0, 1), (testing::some_text() * 3 % kClasses).flatten());
    };
    const at::Tensor scores = model->outputs(inputs_of(section)).at(0);
    EXPECT_NEAR(scores[0][5][10].item<double>(), step.score, 1e-6) << section;
    const at::Tensor before = loss(scores);
    EXPECT_NEAR(before.item<double>(), step.loss, 1e-6) << section;
    before.backward();
    const at::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
    EXPECT_NEAR(loss(model->outputs(inputs_of(section)).at(0)).item<double>(), step.loss_after, 1e-6) << section;
  }
}

// Returns which positions of the output change if position `changed` of input `which` changes.
std::vector<bool> changes(Model& model, const Tensors& inputs, std::size_t which, std::int64_t changed) {
  const at::NoGradGuard no_grad;
  const auto before = model.outputs(inputs).at(0);
  auto others = inputs;
  others[which] = others[which].clone();
  others[which].select(1, changed).fill_(10);
  const auto after = model.outputs(others).at(0);
  std::vector<bool> result;
  for (std::int64_t i = 0; i < 6; ++i) {
    result.push_back(!at::allclose(after.select(1, i), before.select(1, i), 0, 1e-6));
  }
  return result;
}

TEST(TextModels, NoPositionSeesWhatComesLater) {
  for (const std::string section :
       {"{name: gpt, layers: 2, heads: 4, width: 16}",
        "{name: gpt, layers: 2, heads: 4, width: 16, attention: explicit}",
        "{name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16, hidden: 24}", "{name: lstm, width: 12}",
        "{name: gru, width: 12}", "{name: transformer, layers: 2, heads: 4, width: 16}"}) {
    const auto model = make_model(section, text_sample_of(section));
    testing::fill(*model);
    const auto inputs = inputs_of(section);
    for (std::int64_t changed = 0; changed < 6; ++changed) {
      std::vector<bool> expected(6);
      for (std::size_t i = 0; i < 6; ++i) expected[i] = std::cmp_greater_equal(i, changed);
      EXPECT_EQ(changes(*model, inputs, inputs.size() - 1, changed), expected) << section << " " << changed;
    }
  }
}

TEST(TextModels, EveryPositionOfBertAndOfSourcesSeesAllOthers) {
  const std::vector<bool> all(6, true);
  for (const std::string section :
       {"{name: bert, layers: 2, heads: 4, width: 16}", "{name: transformer, layers: 2, heads: 4, width: 16}"}) {
    const auto model = make_model(section, text_sample_of(section));
    testing::fill(*model);
    for (std::int64_t changed = 0; changed < 6; ++changed) {
      EXPECT_EQ(changes(*model, inputs_of(section), 0, changed), all) << section << " " << changed;
    }
  }
}

// The processor determines whether oneDNN has an LSTM for 16-bit types.
TEST(TextModels, LstmComputesInSixteenBitsOrNamesTheKey) {
  const auto model = make_model("{name: lstm, width: 12}", kShortText);
  const auto inputs = inputs_of("lstm");
  for (const auto& [dtype, name] : {std::pair{at::kHalf, "fp16"}, std::pair{at::kBFloat16, "bf16"}}) {
    const Autocast autocast(at::kCPU, dtype);
    try {
      EXPECT_TRUE(model->outputs(inputs).at(0).isfinite().all().item<bool>());
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr(std::string("train.precision: ") + name + " cannot be combined with model lstm"));
    }
  }
}

TEST(TextModels, RefuseWhatDoesNotFit) {
  const auto refused = [](const std::string& message) { return ThrowsMessage<ConfigError>(HasSubstr(message)); };
  for (const std::string name : {"bert", "gru", "llama", "lstm"}) {
    EXPECT_THAT([&] { make_model(name, classification_samples({1, 28, 28}, 10)); },
                refused("model " + name + " needs a sequence of indices"));
  }
  EXPECT_THAT([] { make_model("{name: llama, heads: 3}", kShortText); },
              refused("width 128 cannot be divided among 3"));
  EXPECT_THAT([] { make_model("{name: llama, heads: 4, key_value_heads: 3}", kShortText); },
              refused("4 heads cannot share key_value_heads: 3 equally"));
  EXPECT_THAT([] { make_model("{name: llama, heads: 128}", kShortText); }, refused("heads of 1 features"));
  EXPECT_THAT([] { make_model("{name: bert, heads: 3}", kShortText); }, refused("width 128 cannot be divided among 3"));
  EXPECT_THAT([] { make_model("{name: bert, padding: 11}", kShortText); },
              refused("padding: 11 is not one of the 11 tokens"));
  EXPECT_THAT([] { make_model("transformer", kShortText); },
              refused("two sequences of indices, a source and a target"));
  EXPECT_THAT([] { make_model("transformer", pairs(12)); }, refused("use tied: false"));
  EXPECT_THAT([] { make_model("{name: transformer, padding: 11}", pairs()); }, refused("not one of the 11 tokens"));
  EXPECT_EQ(make_model("{name: transformer, tied: false}", pairs(12))->outputs(inputs_of("transformer"))[0].sizes(),
            (at::IntArrayRef{2, 6, 11}));
}

}  // namespace
}  // namespace phalanx
