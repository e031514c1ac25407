// SPDX-License-Identifier: Apache-2.0
// Tests class error, confusion, multi-label confusion, precision and recall by hand, and against loops over samples.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/testing/meter.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::integers;
using testing::metric_of;
using testing::metrics_of;
using testing::numbers;
using ::testing::Pair;

constexpr std::int64_t kSamples = 200, kClasses = 5;

// Scores with many ties, which depend on the classes.
struct Random {
  Random() {
    at::manual_seed(3);
    target = at::randint(kClasses, {kSamples}, at::kLong);
    scores = (at::rand({kSamples, kClasses}) * 6 + at::one_hot(target, kClasses) * 2).floor();
    labels = at::rand({kSamples, kClasses}).lt(0.3).to(at::kFloat);
  }
  double score(std::int64_t i, std::int64_t j) const { return scores[i][j].item<double>(); }
  std::int64_t label(std::int64_t i) const { return target[i].item<std::int64_t>(); }

  at::Tensor target, scores, labels;
};

std::string top(std::int64_t k) { return "{name: class_error, k: " + std::to_string(k) + "}"; }

TEST(ClassError, CountsClassesThatAreNotAmongTheTopK) {
  const at::Tensor scores = numbers({.1, .7, .2, .5, .3, .4, .6, .9, .8}).reshape({3, 3});
  const at::Tensor target = integers({1, 2, 0});  // places 1, 2, 3
  EXPECT_EQ(metrics_of("class_error", scores, target)[0].first, "class_error_top1");
  EXPECT_DOUBLE_EQ(metric_of(top(1), scores, target), 2.0 / 3);
  EXPECT_DOUBLE_EQ(metric_of(top(2), scores, target), 1.0 / 3);
  EXPECT_EQ(metric_of(top(3), scores, target), 0);
  EXPECT_THAT([&] { metric_of(top(9), scores, target); },
              ::testing::ThrowsMessage<ConfigError>("class_error: k is 9, but there are 3 classes"));
}

TEST(ClassError, EqualsALoopOverSamples) {
  const Random random;
  for (std::int64_t k = 1; k <= kClasses; ++k) {
    std::int64_t errors = 0;
    for (std::int64_t i = 0; i < kSamples; ++i) {
      std::vector<std::int64_t> order{0, 1, 2, 3, 4};
      std::ranges::stable_sort(order, [&](auto a, auto b) { return random.score(i, a) > random.score(i, b); });
      errors += std::ranges::find(order, random.label(i)) - order.begin() >= k;
    }
    EXPECT_EQ(metric_of(top(k), random.scores, random.target), static_cast<double>(errors) / kSamples) << "top " << k;
  }
}

TEST(ClassError, Top1IsOneMinusAccuracy) {
  const Random random;
  EXPECT_DOUBLE_EQ(metric_of(top(1), random.scores, random.target),
                   1 - metric_of("accuracy", random.scores, random.target));
}

TEST(ClassError, AScoreThatIsNotANumberIsAnError) {
  EXPECT_EQ(metric_of(top(2), numbers({NAN, NAN, NAN}).reshape({1, 3}), integers({0})), 1);
}

TEST(Confusion, CountsSamplesByTargetAndPrediction) {
  const at::Tensor scores = at::one_hot(integers({0, 1, 1, 0, 1}), 2).to(at::kFloat);
  const at::Tensor target = integers({0, 0, 1, 1, 1});
  EXPECT_THAT(metrics_of("confusion", scores, target),
              ElementsAre(Pair("confusion[0][0]", 1.0), Pair("confusion[0][1]", 1.0), Pair("confusion[1][0]", 1.0),
                          Pair("confusion[1][1]", 2.0)));
  EXPECT_THAT(metrics_of("{name: confusion, normalized: true}", scores, target),
              ElementsAre(Pair("confusion[0][0]", 0.5), Pair("confusion[0][1]", 0.5), Pair("confusion[1][0]", 1.0 / 3),
                          Pair("confusion[1][1]", 2.0 / 3)));
}

TEST(Confusion, EqualsALoopOverSamples) {
  const Random random;
  std::vector<double> table(kClasses * kClasses);
  for (std::int64_t i = 0; i < kSamples; ++i) {
    std::int64_t predicted = 0;
    for (std::int64_t j = 1; j < kClasses; ++j)
      predicted = random.score(i, j) > random.score(i, predicted) ? j : predicted;
    ++table[static_cast<std::size_t>(random.label(i) * kClasses + predicted)];
  }
  std::vector<double> metrics;
  for (const auto& [name, value] : metrics_of("confusion", random.scores, random.target)) metrics.push_back(value);
  EXPECT_EQ(metrics, table);
}

// Counts true and false positives, and false and true negatives, for each label in a loop over samples.
std::vector<double> count(const Random& random, double threshold) {
  std::vector<double> counts(kClasses * 4);
  for (std::int64_t j = 0; j < kClasses; ++j) {
    for (std::int64_t i = 0; i < kSamples; ++i) {
      const bool yes = random.score(i, j) > threshold, right = random.labels[i][j].item<double>() == 1;
      ++counts[static_cast<std::size_t>(4 * j + (yes ? (right ? 0 : 1) : (right ? 2 : 3)))];
    }
  }
  return counts;
}

TEST(MultiLabelConfusion, EqualsALoopOverSamples) {
  const Random random;
  const auto metrics = metrics_of("{name: multi_label_confusion, threshold: 3}", random.scores, random.labels);
  std::vector<double> values;
  for (const auto& [name, value] : metrics) values.push_back(value);
  EXPECT_EQ(values, count(random, 3));
  EXPECT_EQ(metrics[6].first, "false_negatives[1]");
}

TEST(PrecisionAndRecall, EqualALoopOverSamples) {
  const Random random;
  const auto counts = count(random, 3);
  double precision = 0, recall = 0, hits = 0, found = 0, right = 0;
  for (std::size_t j = 0; j < kClasses; ++j) {
    const auto* c = &counts[4 * j];
    precision += c[0] / (c[0] + c[1]) / kClasses;
    recall += c[0] / (c[0] + c[2]) / kClasses;
    hits += c[0];
    found += c[0] + c[1];
    right += c[0] + c[2];
  }
  const auto read = [&](const std::string& name, const std::string& average) {
    return metric_of("{name: " + name + ", threshold: 3, average: " + average + "}", random.scores, random.labels);
  };
  EXPECT_NEAR(read("precision", "macro"), precision, 1e-15);
  EXPECT_NEAR(read("recall", "macro"), recall, 1e-15);
  EXPECT_EQ(read("precision", "micro"), hits / found);
  EXPECT_EQ(read("recall", "micro"), hits / right);
  EXPECT_EQ(read("precision", "none"), counts[0] / (counts[0] + counts[1]));
}

TEST(PrecisionAndRecall, WithClassNumbersTheHighestScoreIsThePrediction) {
  // Predicts 0, 0, 1, 2 for classes 0, 1, 1, 0.
  const at::Tensor scores = at::one_hot(integers({0, 0, 1, 2}), 3).to(at::kFloat), target = integers({0, 1, 1, 0});
  EXPECT_THAT(metrics_of("{name: precision, average: none}", scores, target),
              ElementsAre(Pair("precision[0]", 0.5), Pair("precision[1]", 1.0), Pair("precision[2]", 0.0)));
  EXPECT_THAT(metrics_of("{name: recall, average: none}", scores, target),
              ElementsAre(Pair("recall[0]", 0.5), Pair("recall[1]", 0.5), Pair("recall[2]", 0.0)));
  EXPECT_EQ(metric_of("{name: recall, average: micro}", scores, target), 0.5);
}

TEST(PrecisionAndRecall, AcceptOneScorePerSample) {
  const at::Tensor scores = numbers({2, 1, -1, -2, 0}), target = integers({1, 0, 1, 0, 1});
  EXPECT_EQ(metric_of("precision", scores, target), 0.5);
  EXPECT_EQ(metric_of("recall", scores.reshape({5, 1}), target), 1.0 / 3);
}

TEST(PrecisionAndRecall, RefuseATargetThatDoesNotFit) {
  EXPECT_THROW(metric_of("precision", numbers({1, 2, 3, 4}).reshape({2, 2}), numbers({1, 2})), ConfigError);
  EXPECT_THROW(testing::make_meter("{name: recall, average: median}"), ConfigError);
}

}  // namespace
}  // namespace phalanx
