// SPDX-License-Identifier: Apache-2.0
// Tests what all generated datasets have in common, and spirals, regression, random_images and random_tokens.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/random_stream.h"
#include "datasets/testing/splits.h"
#include "framework/base/random.h"

namespace phalanx {
namespace {

TEST(Generated, SamplesDependOnlyOnTheirIndex) {
  for (const std::string yaml :
       {"spirals", "{name: regression, features: 3}", "{name: random_images, side: 4}",
        "{name: random_tokens, context: 8}", "copy_task", "reversal", "graph_communities", "clicks"}) {
    const auto splits = testing::load_splits(yaml);
    const auto many = testing::read_samples(*splits.train, {3, 9, 4}), one = testing::read_samples(*splits.train, {9}),
               test = testing::read_samples(*splits.test, {9});
    EXPECT_TRUE(at::equal(many.inputs[0][1], one.inputs[0][0])) << yaml;
    EXPECT_TRUE(at::equal(many.targets[0][1], one.targets[0][0])) << yaml;
    EXPECT_FALSE(at::equal(test.inputs[0], one.inputs[0])) << yaml << ": no sample of training";
    EXPECT_THROW(testing::read_samples(*splits.train, {splits.train->size()}), c10::IndexError) << yaml;
  }
}

// Results of earlier releases stay comparable only if every release draws the same samples.
TEST(Generated, SamplesAreDrawnFromSeedSplitAndIndex) {
  const auto splits = testing::load_splits("{name: random_tokens, vocabulary: 100, context: 4, order: 0, seed: 5}");
  for (const std::uint64_t split : {0, 1}) {
    const auto batch = testing::read_samples(split == 0 ? *splits.train : *splits.test, {9});
    RandomStream random(mix(mix(5, split), 9));
    auto token = static_cast<std::int64_t>(random.below(100));
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_EQ(batch.inputs[0][0][i].item<std::int64_t>(), token);
      random.next();  // decides whether the next token follows from this one
      token = static_cast<std::int64_t>(random.below(100));
      EXPECT_EQ(batch.targets[0][0][i].item<std::int64_t>(), token);
    }
  }
}

TEST(Generated, RejectsAnIndexOutsideTheSplit) {
  const auto splits = testing::load_splits("{name: copy_task, train_samples: 3, test_samples: 2}");
  EXPECT_THROW(testing::read_samples(*splits.train, {0, 3}), c10::IndexError);
  EXPECT_THROW(testing::read_samples(*splits.test, {-1}), c10::IndexError);
}

TEST(Spirals, LieOnTheSpiralOfTheirClass) {
  const auto splits = testing::load_splits("{name: spirals, classes: 3, turns: 0.25, noise: 0}");
  const auto batch = testing::read_first(*splits.train, 200);
  for (std::int64_t i = 0; i < 200; ++i) {
    const auto x = batch.inputs[0][i][0].item<double>(), y = batch.inputs[0][i][1].item<double>();
    const auto label = batch.targets[0][i].item<std::int64_t>();
    EXPECT_EQ(splits.train->label(i), label);
    const double radius = std::hypot(x, y), angle = 2 * M_PI * (0.25 * radius + static_cast<double>(label) / 3);
    EXPECT_NEAR(x, radius * std::cos(angle), 1e-5);
    EXPECT_NEAR(y, radius * std::sin(angle), 1e-5);
  }
}

// The targets of samples without noise are one linear function of the inputs, so the function of two features follows
// from any two samples.
TEST(Regression, IsALinearFunctionAndNoise) {
  const auto exact =
      testing::read_first(*testing::load_splits("{name: regression, features: 2, noise: 0}").train, 1000);
  const auto noisy =
      testing::read_first(*testing::load_splits("{name: regression, features: 2, noise: 0.5}").train, 1000);
  const auto x = exact.inputs[0].to(at::kDouble), y = exact.targets[0].to(at::kDouble);
  const auto det = [](double a, double b, double c, double d) { return a * d - b * c; };
  const auto at = [](const at::Tensor& t, int i, int j) { return t[i][j].item<double>(); };
  const double whole = det(at(x, 0, 0), at(x, 0, 1), at(x, 1, 0), at(x, 1, 1));
  const double u = det(at(y, 0, 0), at(x, 0, 1), at(y, 1, 0), at(x, 1, 1)) / whole;
  const double v = det(at(x, 0, 0), at(y, 0, 0), at(x, 1, 0), at(y, 1, 0)) / whole;
  const auto predicted = x.select(1, 0) * u + x.select(1, 1) * v;
  EXPECT_LT((predicted - y.select(1, 0)).abs().max().item<double>(), 1e-4);
  const auto nx = noisy.inputs[0].to(at::kDouble);
  const auto rest = noisy.targets[0].to(at::kDouble).select(1, 0) - nx.select(1, 0) * u - nx.select(1, 1) * v;
  EXPECT_NEAR(rest.std().item<double>(), 0.5, 0.05);
}

TEST(RandomImages, AreStandardised) {
  const auto batch =
      testing::read_first(*testing::load_splits("{name: random_images, side: 32, classes: 4}").train, 20);
  EXPECT_NEAR(batch.inputs[0].mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(batch.inputs[0].std().item<double>(), 1, 0.02);
  EXPECT_EQ(batch.targets[0].max().item<std::int64_t>(), 3);
}

TEST(RandomTokens, FollowFromTheOneBeforeAsOftenAsConfigured) {
  const auto batch = testing::read_first(
      *testing::load_splits("{name: random_tokens, vocabulary: 7, context: 100, order: 1}").train, 20);
  std::array<std::int64_t, 7> follows;
  follows.fill(-1);
  for (std::int64_t i = 0; i < 20; ++i) {
    for (std::int64_t j = 0; j < 100; ++j) {
      auto& rule = follows[static_cast<std::size_t>(batch.inputs[0][i][j].item<std::int64_t>())];
      const auto next = batch.targets[0][i][j].item<std::int64_t>();
      if (rule >= 0) {
        EXPECT_EQ(rule, next);
      }
      rule = next;
      if (j < 99) {
        EXPECT_EQ(batch.inputs[0][i][j + 1].item<std::int64_t>(), next);
      }
    }
  }
}

}  // namespace
}  // namespace phalanx
