// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/generation/text_generator.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

std::map<std::int64_t, double> shares(const SamplingOptions& options, const at::Tensor& scores, int draws = 20000) {
  TokenSampler sampler(options);
  std::map<std::int64_t, double> shares;
  for (int i = 0; i < draws; ++i) shares[sampler.draw(scores)] += 1.0 / draws;
  return shares;
}

const at::Tensor& scores() {
  static const at::Tensor logarithms = at::tensor({0.1, 0.4, 0.2, 0.3}).log() + 5;
  return logarithms;
}

TEST(TokenSampler, DrawsByProbability) {
  const auto found = shares({}, scores());
  for (const auto& [token, share] : std::map<std::int64_t, double>{{0, 0.1}, {1, 0.4}, {2, 0.2}, {3, 0.3}}) {
    EXPECT_NEAR(found.at(token), share, 0.02);
  }
  // p^2, normalised
  EXPECT_NEAR(shares({.temperature = 0.5}, scores()).at(1), 0.16 / 0.3, 0.02);
}

TEST(TokenSampler, ExcludesUnlikelyTokens) {
  const auto always = [](std::int64_t token) { return ElementsAre(Pair(token, DoubleNear(1, 1e-9))); };
  EXPECT_THAT(shares({.temperature = 0}, scores()), always(1));
  EXPECT_THAT(shares({.top_k = 1}, scores()), always(1));
  const auto two = shares({.top_k = 2}, scores());
  EXPECT_EQ(two.size(), 2u);
  EXPECT_NEAR(two.at(1), 0.4 / 0.7, 0.02);
  EXPECT_EQ(shares({.top_p = 0.65}, scores()).size(), 2u);
  EXPECT_EQ(shares({.top_p = 0.75}, scores()).size(), 3u);
  EXPECT_EQ(shares({.top_p = 1e-9}, scores()).size(), 1u);
  EXPECT_EQ(shares({.top_k = 3, .top_p = 0.9}, scores()).size(), 3u);
}

TEST(TokenSampler, RefusesInvalidOptionsAndScores) {
  const auto refused = [](const SamplingOptions& options, const char* part) {
    EXPECT_THAT([&] { TokenSampler sampler(options); }, ThrowsMessage<ConfigError>(HasSubstr(part)));
  };
  refused({.temperature = -1}, "temperature");
  refused({.top_k = -1}, "top_k");
  refused({.top_p = 0}, "top_p");
  refused({.top_p = 1.5}, "top_p");
  TokenSampler sampler(SamplingOptions{});
  EXPECT_THAT([&] { sampler.draw(at::tensor({0.0, std::nan("")})); },
              ThrowsMessage<Error>(HasSubstr("score of token 1 is not a number")));
}

constexpr std::int64_t kContext = 8;

std::shared_ptr<Model> make_model(const std::string& section) {
  const auto sample = language_samples(kContext, 11);
  return config::load_as<Models::Choice>("model", section, "test.yaml")
      .make(ModelSpec{.inputs = sample.inputs, .outputs = {{.name = "scores", .shape = {kContext, 11}, .classes = 0}}});
}

std::vector<std::int64_t> generate(Model& model, bool cache, const SamplingOptions& sampling, std::int64_t count = 30) {
  std::vector<std::int64_t> tokens;
  TextGenerator generator(model, {.context = kContext, .cache = cache, .sampling = sampling});
  generator.run({3, 1, 4}, count, [&](std::int64_t token) {
    tokens.push_back(token);
    return true;
  });
  return tokens;
}

TEST(TextGenerator, GivesTheSameTextWithAndWithoutACache) {
  for (const char* section : {"{name: gpt, layers: 2, heads: 2, width: 16}",
                              "{name: llama, layers: 2, heads: 4, key_value_heads: 2, width: 16}"}) {
    const auto model = make_model(section);
    const auto text = generate(*model, true, {.seed = 3});
    EXPECT_EQ(text.size(), 30u) << "longer than the context";
    EXPECT_EQ(text, generate(*model, false, {.seed = 3})) << section;
    EXPECT_EQ(text, generate(*model, true, {.seed = 3})) << "the same seed";
    EXPECT_NE(text, generate(*model, true, {.seed = 4})) << "another one";
    EXPECT_EQ(generate(*model, true, {.temperature = 0, .seed = 1}), generate(*model, true, {.top_k = 1, .seed = 2}));
  }
}

TEST(TextGenerator, StopsWhenTheCallbackReturnsFalse) {
  const auto model = make_model("{name: gpt, layers: 1, heads: 1, width: 8}");
  int count = 0;
  TextGenerator(*model, {.context = kContext}).run({1}, 100, [&](std::int64_t) { return ++count < 5; });
  EXPECT_EQ(count, 5);
  EXPECT_THROW(TextGenerator(*model, {.context = kContext}).run({}, 1, [](auto) { return true; }),
               std::invalid_argument);
}

TEST(TextGenerator, TakesAPromptThatIsLongerThanTheContext) {
  const auto model = make_model("{name: gpt, layers: 1, heads: 1, width: 8}");
  const std::vector<std::int64_t> prompt(3 * kContext, 2), last(kContext, 2);
  const auto first_after = [&](const std::vector<std::int64_t>& text) {
    std::int64_t first = -1;
    TextGenerator(*model, {.context = kContext}).run(text, 1, [&](std::int64_t token) {
      return (first = token, true);
    });
    return first;
  };
  EXPECT_EQ(first_after(prompt), first_after(last));
}

TEST(TextGenerator, RefusesACacheThatTheModelDoesNotHave) {
  const auto sample = classification_samples({4}, 3);
  const auto model = config::load_as<Models::Choice>("model", "{name: mlp, hidden: [4]}", "test.yaml")
                         .make(ModelSpec{.inputs = sample.inputs, .outputs = {{.name = "scores", .shape = {3}}}});
  EXPECT_THAT([&] { TextGenerator(*model, {.context = 4}); }, ThrowsMessage<ConfigError>(HasSubstr("cache")));
}

}  // namespace
}  // namespace phalanx
