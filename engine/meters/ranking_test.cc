// SPDX-License-Identifier: Apache-2.0
// Tests average precision, its mean, area under the curve, NDCG and precision at k by hand, and against their
// definitions.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "engine/meters/thresholds.h"
#include "engine/testing/meter.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using testing::integers;
using testing::metric_of;
using testing::metrics_of;
using testing::numbers;
using ::testing::Pair;

constexpr std::int64_t kRankedSamples = 120, kClasses = 3;

struct RandomRanking {
  RandomRanking() {
    at::manual_seed(5);
    labels = at::rand({kRankedSamples, kClasses}).lt(0.3).to(at::kFloat);
    scores = (at::rand({kRankedSamples, kClasses}) * 20 + labels * 6).floor();  // many ties
  }
  double score(std::int64_t i, std::int64_t j) const { return scores[i][j].item<double>(); }
  bool relevant(std::int64_t i, std::int64_t j) const { return labels[i][j].item<double>() > 0; }

  at::Tensor labels, scores;
};

// Returns the mean over the positives of the precision among all samples with at least the same score, which is equal
// to the sum over thresholds.
double average_precision_of(const RandomRanking& random, std::int64_t j) {
  double sum = 0, positives = 0;
  for (std::int64_t i = 0; i < kRankedSamples; ++i) {
    if (!random.relevant(i, j)) continue;
    double found = 0, right = 0;
    for (std::int64_t other = 0; other < kRankedSamples; ++other) {
      if (random.score(other, j) < random.score(i, j)) continue;
      ++found;
      right += random.relevant(other, j);
    }
    sum += right / found;
    ++positives;
  }
  return sum / positives;
}

// Returns the share of pairs of a positive and a negative that are in order; pairs with equal scores count half.
double area_of(const RandomRanking& random, std::int64_t j) {
  double won = 0, pairs = 0;
  for (std::int64_t i = 0; i < kRankedSamples; ++i) {
    for (std::int64_t other = 0; other < kRankedSamples; ++other) {
      if (!random.relevant(i, j) || random.relevant(other, j)) continue;
      const double lead = random.score(i, j) - random.score(other, j);
      won += lead > 0 ? 1 : lead == 0 ? 0.5 : 0;
      ++pairs;
    }
  }
  return won / pairs;
}

TEST(AveragePrecision, IsTheMeanPrecisionAtTheRelevantPlaces) {
  // Positions 1, 3 and 4 are relevant, with precisions 1, 2/3 and 3/4.
  const at::Tensor scores = numbers({.9, .8, .7, .6, .5}), target = integers({1, 0, 1, 1, 0});
  EXPECT_DOUBLE_EQ(metric_of("average_precision", scores, target), (1 + 2.0 / 3 + 3.0 / 4) / 3);
}

TEST(AveragePrecision, EqualsItsDefinitionWithTies) {
  const RandomRanking random;
  const auto metrics = metrics_of("average_precision", random.scores, random.labels);
  ASSERT_EQ(metrics.size(), static_cast<std::size_t>(kClasses));
  double sum = 0;
  for (std::int64_t j = 0; j < kClasses; ++j) {
    EXPECT_EQ(metrics[static_cast<std::size_t>(j)].first, "average_precision[" + std::to_string(j) + "]");
    EXPECT_NEAR(metrics[static_cast<std::size_t>(j)].second, average_precision_of(random, j), 1e-14);
    sum += average_precision_of(random, j);
  }
  EXPECT_NEAR(metric_of("mean_average_precision", random.scores, random.labels), sum / kClasses, 1e-14);
}

TEST(AveragePrecision, TheMeanExcludesClassesWithoutSamples) {
  const at::Tensor scores = numbers({.9, .1, 0, .8, .2, 0}).reshape({2, 3});
  EXPECT_EQ(metric_of("mean_average_precision", scores, integers({0, 1})), 1) << "class 1 is found in its first place";
  EXPECT_EQ(metric_of("mean_average_precision", scores, integers({1, 0})), 0.5);
}

TEST(AveragePrecision, TheOrderOfEqualScoresDoesNotMatter) {
  const at::Tensor scores = numbers({1, 1, 1, 1});
  EXPECT_EQ(metric_of("average_precision", scores, integers({1, 0, 0, 0})), 0.25);
  EXPECT_EQ(metric_of("average_precision", scores, integers({0, 0, 0, 1})), 0.25);
}

TEST(Auc, IsTheShareOfPairsInTheRightOrder) {
  const at::Tensor target = integers({1, 1, 0, 0});
  EXPECT_EQ(metric_of("auc", numbers({4, 3, 2, 1}), target), 1);
  EXPECT_EQ(metric_of("auc", numbers({1, 2, 3, 4}), target), 0);
  EXPECT_EQ(metric_of("auc", numbers({4, 2, 3, 1}), target), 0.75);
  EXPECT_EQ(metric_of("auc", numbers({1, 1, 1, 1}), target), 0.5);
}

TEST(Auc, EqualsItsDefinitionWithTies) {
  const RandomRanking random;
  double sum = 0;
  for (std::int64_t j = 0; j < kClasses; ++j) {
    const auto one = metric_of("auc", random.scores.select(1, j), random.labels.select(1, j));
    EXPECT_EQ(one, area_of(random, j));
    sum += one;
  }
  EXPECT_DOUBLE_EQ(metric_of("auc", random.scores, random.labels), sum / kClasses);
}

// As in scikit-learn's roc_auc_score and average_precision_score, the metrics are NaN and 0.
TEST(Auc, IsUndefinedWithSamplesOfOneKindOnly) {
  for (const std::int64_t kind : {0, 1}) {
    ::testing::internal::CaptureStderr();
    const double auc = metric_of("auc", numbers({3, 2, 1}), integers({kind, kind, kind}));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("auc is undefined and reads NaN"));
    EXPECT_TRUE(std::isnan(auc)) << auc;
  }
  EXPECT_EQ(metric_of("average_precision", numbers({3, 2, 1}), integers({0, 0, 0})), 0);
}

TEST(Auc, IsTheMeanOverTheClassesInWhichItIsDefined) {
  const at::Tensor scores = numbers({3, 1, 2, 2, 1, 3}).reshape({3, 2});
  const at::Tensor labels = integers({1, 0, 0, 0, 0, 0}).reshape({3, 2});
  EXPECT_EQ(metric_of("auc", scores, labels), 1);
}

TEST(Auc, AScoreThatIsNotANumberRanksLast) {
  EXPECT_EQ(metric_of("auc", numbers({NAN, 1, -1}), integers({1, 0, 0})), 0);
}

TEST(Thresholds, WithoutPositivesAveragePrecisionIs0AndAucIsNan) {
  EXPECT_EQ(average_precision({{.positives = 0, .negatives = 3}}), 0);
  EXPECT_TRUE(std::isnan(area_under_roc({{.positives = 0, .negatives = 3}})));
}

// NDCG@6 of items with relevance 3, 2, 3, 0, 1, 2, in the order of their scores.
TEST(Ndcg, HasBothDiscounts) {
  const at::Tensor scores = numbers({6, 5, 4, 3, 2, 1}).reshape({1, 6});
  const at::Tensor relevance = numbers({3, 2, 3, 0, 1, 2}).reshape({1, 6});
  const auto torchnet = metrics_of("{name: ndcg, k: 6, discount: log2(i)}", scores, relevance);
  EXPECT_THAT(torchnet, ElementsAre(Pair("ndcg_at_6", ::testing::DoubleNear(0.932, 5e-4))));
  EXPECT_NEAR(metric_of("{name: ndcg, k: 6}", scores, relevance), 0.961, 5e-4);
}

TEST(Ndcg, LooksOnlyAtTheFirstK) {
  const at::Tensor scores = numbers({3, 2, 1}).reshape({1, 3}), relevance = numbers({0, 2, 1}).reshape({1, 3});
  EXPECT_EQ(metric_of("{name: ndcg, k: 1}", scores, relevance), 0);
  const double second = 2 / std::log2(3.0), best = 2 + 1 / std::log2(3.0);
  EXPECT_DOUBLE_EQ(metric_of("{name: ndcg, k: 2}", scores, relevance), second / best);
}

TEST(Ndcg, IsAMeanOverQueriesWithSomethingToFind) {
  const at::Tensor scores = numbers({2, 1, 2, 1, 2, 1}).reshape({3, 2});
  const at::Tensor relevance = numbers({1, 0, 0, 1, 0, 0}).reshape({3, 2});
  EXPECT_DOUBLE_EQ(metric_of("ndcg", scores, relevance), (1 + 1 / std::log2(3.0)) / 2);
}

TEST(PrecisionAtK, IsTheShareOfRelevantItemsAmongTheFirst) {
  const at::Tensor scores = numbers({4, 3, 2, 1, 1, 2, 3, 4}).reshape({2, 4});
  const at::Tensor relevance = numbers({1, 0, 1, 0, 0, 0, 1, 0}).reshape({2, 4});
  const auto at_k = [&](int k) {
    return metrics_of("{name: precision_at_k, k: " + std::to_string(k) + "}", scores, relevance)[0];
  };
  EXPECT_EQ(at_k(1), (Metrics::value_type{"precision_at_1", 0.5}));
  EXPECT_EQ(at_k(2).second, 0.5);
  EXPECT_EQ(at_k(3).second, 0.5);
  EXPECT_EQ(at_k(8).second, 3.0 / 16) << "of k items, however many there are";
}

TEST(PrecisionAtK, RanksTheLowerColumnFirstIfScoresAreEqual) {
  const at::Tensor scores = numbers({1, 1, 1}).reshape({1, 3});
  EXPECT_EQ(metric_of("{name: precision_at_k, k: 1}", scores, numbers({1, 0, 0}).reshape({1, 3})), 1);
  EXPECT_EQ(metric_of("{name: precision_at_k, k: 1}", scores, numbers({0, 0, 1}).reshape({1, 3})), 0);
}

}  // namespace
}  // namespace phalanx
