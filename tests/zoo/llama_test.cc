// What is known of llama: tests/zoo/goldens/make_llama.py writes what Hugging Face's model says. And what it shares
// with gpt: caches of keys and values.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "models/key_value_cache.h"
#include "models/weights_layout.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::make_model;
using ::testing::ThrowsMessage;

const SampleSpec kTiny = language_samples(6, 11);
const SampleSpec kText = language_samples(64, 65);

struct Golden {
  struct Count {
    std::string section;
    std::int64_t classes, parameters;
  };
  struct Step {
    std::string section;
    double loss, loss_after, score;
  };
  std::vector<Count> counts;
  std::vector<Step> steps;
  std::string layout;
};

Golden golden() {
  Golden all;
  std::istringstream lines(read_file("tests/zoo/llama.golden"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string kind, section;
    std::getline(fields, kind, '\t');
    if (kind == "count") {
      std::getline(fields, section, '\t');
      auto& count = all.counts.emplace_back(Golden::Count{section, 0, 0});
      fields >> count.classes >> count.parameters;
    } else if (kind == "step") {
      std::getline(fields, section, '\t');
      auto& step = all.steps.emplace_back(Golden::Step{section, 0, 0, 0});
      fields >> step.loss >> step.loss_after >> step.score;
    } else {
      all.layout += line + "\n";
    }
  }
  return all;
}

at::Tensor some_text() { return at::tensor({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}, at::kLong).view({2, 6}); }

// By hand, of sizes that no test allocates.
std::int64_t parameters_of(std::int64_t layers, std::int64_t width, std::int64_t shared, std::int64_t hidden,
                           std::int64_t rows) {
  return rows * width + layers * (2 * width * width + 2 * width * shared + 3 * width * hidden + 2 * width) + width;
}

TEST(Llama, HasTheNamesShapesAndNumbersOfThePublishedOnes) {
  const auto expected = golden();
  EXPECT_EQ(testing::layout_of(*make_model(expected.steps.at(0).section, kTiny)), expected.layout);
  EXPECT_EQ(expected.counts.at(0).parameters, parameters_of(32, 4096, 4096, 11008, 2 * 32000));
  EXPECT_EQ(expected.counts.at(1).parameters, parameters_of(16, 2048, 512, 8192, 128256));
  EXPECT_EQ(testing::parameters_of(*make_model("{name: llama, heads: 4, key_value_heads: 2, hidden: 352}", kText)),
            parameters_of(4, 128, 64, 352, 2 * 65));
  EXPECT_EQ(testing::parameters_of(*make_model("{name: llama, tied: true}", kText)),
            parameters_of(4, 128, 128, 352, 65));
}

TEST(Llama, ComputesAndLearnsAsHuggingFaces) {
  const auto expected = golden();
  ASSERT_EQ(expected.steps.size(), 2u);
  for (const auto& step : expected.steps) {
    const auto model = make_model(step.section, kTiny);
    weights_to_double(*model);
    testing::fill(*model);
    const auto loss = [&](const at::Tensor& scores) {
      return at::cross_entropy_loss(scores.flatten(0, 1), (some_text() * 3 % 11).flatten());
    };
    const at::Tensor scores = model->forward(some_text());
    EXPECT_NEAR(scores[0][5][10].item<double>(), step.score, 1e-6) << step.section;
    const at::Tensor before = loss(scores);
    EXPECT_NEAR(before.item<double>(), step.loss, 1e-6) << step.section;
    before.backward();
    const at::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.sub_(parameter.grad(), 0.1);
    EXPECT_NEAR(loss(model->forward(some_text())).item<double>(), step.loss_after, 1e-6) << step.section;
  }
}

constexpr const char* kWithCaches[] = {"{name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16}",
                                       "{name: gpt, layers: 2, heads: 2, width: 8}",
                                       "{name: gpt, layers: 2, heads: 2, width: 8, attention: explicit}",
                                       "{name: moe_gpt, layers: 2, heads: 2, width: 8, experts: 2, balance: 0}"};

TEST(KeyValueCaches, GoOnAsIfAllHadBeenComputedAtOnce) {
  const at::NoGradGuard no_grad;
  for (const auto* section : kWithCaches) {
    const auto model = make_model(section, kTiny);
    model->eval();
    const at::Tensor whole = model->forward(some_text());
    KeyValueCache cache(6);
    ASSERT_TRUE(model->go_on_from(&cache)) << section;
    std::vector<at::Tensor> parts;
    for (const auto& [begin, count] : {std::pair(0, 2), std::pair(2, 1), std::pair(3, 3)}) {
      EXPECT_EQ(cache.length(), begin);
      parts.push_back(model->forward(some_text().narrow(1, begin, count)));
    }
    EXPECT_TRUE(at::allclose(at::concat(parts, 1), whole, 1e-5, 1e-6)) << section;
    EXPECT_ANY_THROW(model->forward(some_text().narrow(1, 0, 1))) << "the context is full";
    model->go_on_from(nullptr);
    EXPECT_TRUE(at::allclose(model->forward(some_text()), whole, 1e-5, 1e-6)) << section;
  }
  KeyValueCache unused(6);
  EXPECT_FALSE(make_model("mlp", classification_samples({1, 8, 8}, 10))->go_on_from(&unused));
}

TEST(Llama, NoPositionSeesWhatComesLater) {
  const at::NoGradGuard no_grad;
  const auto model = make_model(golden().steps.at(0).section, kTiny);
  testing::fill(*model);
  const auto before = model->forward(some_text());
  for (std::int64_t changed = 0; changed < 6; ++changed) {
    auto text = some_text();
    text.select(1, changed).fill_(10);
    const auto after = model->forward(text);
    EXPECT_TRUE(at::allclose(after.narrow(1, 0, changed), before.narrow(1, 0, changed), 0, 1e-6)) << changed;
    EXPECT_FALSE(at::allclose(after.select(1, changed), before.select(1, changed), 0, 1e-4)) << changed;
  }
}

TEST(Llama, RefusesWhatDoesNotFit) {
  const auto refused = [](const std::string& message) { return ThrowsMessage<ConfigError>(HasSubstr(message)); };
  EXPECT_THAT([] { make_model("llama", classification_samples({1, 28, 28}, 10)); },
              refused("model llama needs a sequence of indices"));
  EXPECT_THAT([] { make_model("{name: llama, heads: 3}", kText); }, refused("width 128 cannot be divided among 3"));
  EXPECT_THAT([] { make_model("{name: llama, heads: 4, key_value_heads: 3}", kText); },
              refused("4 heads cannot share key_value_heads: 3 equally"));
  EXPECT_THAT([] { make_model("{name: llama, heads: 128}", kText); }, refused("heads of 1 features"));
}

}  // namespace
}  // namespace phalanx
