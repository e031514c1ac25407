// SPDX-License-Identifier: Apache-2.0
// Tests gpt. The golden file and the figures come from GPT2LMHeadModel of Hugging Face's transformers 4.46 with PyTorch
// 2.13, with n_layer=2, n_head=2, n_embd=8, vocab_size=11, n_positions=6 and without dropout.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <cmath>

#include "framework/base/error.h"
#include "framework/base/files.h"
#include "tests/zoo/model_under_test.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::make_model;
using ::testing::ThrowsMessage;

const SampleSpec kTiny = language_samples(6, 11);
const SampleSpec kCharacters = language_samples(64, 65);
constexpr const char* kTinyModel = "{name: gpt, layers: 2, heads: 2, width: 8}";
constexpr const char* kTinyExplicit = "{name: gpt, layers: 2, heads: 2, width: 8, attention: explicit}";

TEST(Gpt, HasTheNamesAndShapesOfGpt2) {
  const auto model = make_model(kTinyModel, kTiny);
  EXPECT_EQ(testing::layout_of(*model), read_file("tests/zoo/gpt.golden")) << "all but the head, which is wte";
  const std::int64_t layer = 2 * 2 * 128 + (128 + 1) * 3 * 128 + (128 + 1) * 128 + (128 + 1) * 512 + (512 + 1) * 128;
  EXPECT_EQ(testing::parameters_of(*make_model("gpt", kCharacters)), (65 + 64) * 128 + 4 * layer + 2 * 128);
}

TEST(Gpt, ComputesAsGpt2) {
  for (const auto* section : {kTinyModel, kTinyExplicit}) {
    const auto model = make_model(section, kTiny);
    testing::fill(*model);
    const auto output = model->forward(testing::some_text());
    ASSERT_EQ(output.sizes(), (at::IntArrayRef{2, 6, 11}));
    const auto last = at::tensor({1.007238, 0.787619, -0.201182, -0.993510, -0.815584, 0.158835, 0.978137, 0.842198,
                                  -0.116224, -0.961144, -0.867417})
                          .to(at::kFloat);
    EXPECT_TRUE(at::allclose(output[1][5], last, 1e-4, 1e-5)) << section << output[1][5];
    const auto loss = at::cross_entropy_loss(output.flatten(0, 1), (testing::some_text() * 3 % 11).flatten());
    EXPECT_NEAR(loss.item<double>(), 2.896570, 1e-5) << section;
    loss.backward();
    const auto of_a_character =
        at::tensor({0.108744, -0.034266, -0.060506, 0.041726, 0.014500, 0.025432, -0.081489, -0.005398}).to(at::kFloat);
    EXPECT_TRUE(at::allclose(model->parameters()[0].grad()[5], of_a_character, 1e-4, 1e-5))
        << section << ": both as input and as head";
  }
}

TEST(Gpt, BothAttentionsComputeTheSame) {
  const at::NoGradGuard no_grad;
  const auto fused = make_model("gpt", kCharacters, 3),
             plain = make_model("{name: gpt, attention: explicit}", kCharacters, 3);
  const auto text = at::randint(65, {4, 64}, at::kLong);
  EXPECT_TRUE(at::allclose(fused->forward(text), plain->forward(text), 1e-5, 1e-5));
}

TEST(Gpt, AcceptsShorterTexts) {
  const at::NoGradGuard no_grad;
  const auto model = make_model(kTinyModel, kTiny);
  EXPECT_TRUE(at::allclose(model->forward(testing::some_text().narrow(1, 0, 4)),
                           model->forward(testing::some_text()).narrow(1, 0, 4), 0, 1e-6));
  EXPECT_THAT([&] { model->forward(testing::some_text().view({1, 12})); },
              ThrowsMessage<c10::Error>(HasSubstr("positions for 6 tokens, but got 12")));
}

TEST(Gpt, StartsWithTheValuesOfGpt2) {
  const auto model = make_model("{name: gpt, layers: 8}", kCharacters);
  for (const auto& [name, tensor] : testing::state_of(*model)) {
    if (tensor.dim() == 2) {
      const double expected = name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(2 * 8) : 0.02;
      EXPECT_NEAR(tensor.std().item<double>() / expected, 1, 0.05) << name;
      EXPECT_NEAR(tensor.mean().item<double>(), 0, 0.001) << name;
    } else {
      EXPECT_TRUE(tensor.eq(name.ends_with("weight") ? 1 : 0).all().item<bool>()) << name;
    }
  }
}

TEST(Gpt, RefusesSamplesThatAreNotText) {
  const auto refused = [](const std::string& message) { return ThrowsMessage<ConfigError>(HasSubstr(message)); };
  EXPECT_THAT(
      [] { make_model("gpt", classification_samples({1, 28, 28}, 10)); },
      refused("model gpt needs a sequence of indices, as in the dataset \"text\", but a sample is [1, 28, 28]"));
  EXPECT_THAT([] { make_model("gpt", classification_samples({64}, 10)); }, refused("needs a sequence of indices"));
  EXPECT_THAT([] { make_model("{name: gpt, heads: 3}", kCharacters); },
              refused("width 128 cannot be divided among 3 heads"));
}

}  // namespace
}  // namespace phalanx
