// SPDX-License-Identifier: Apache-2.0
// Tests meters that are means, and the requirements for all meters.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/sampler.h"
#include "engine/meters/mean.h"
#include "engine/meters/meter_set.h"
#include "engine/meters/time.h"
#include "engine/testing/meter.h"
#include "framework/base/error.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

constexpr std::int64_t kMeanSamples = 11, kMeanClasses = 4;

// Sample i has class i % 4, is predicted correctly unless i is divisible by 3, and has the loss i.
at::Tensor targets_of(const at::Tensor& samples) { return samples % kMeanClasses; }
at::Tensor logits_of(const at::Tensor& samples) {
  const at::Tensor wrong = samples.remainder(3).eq(0).to(at::kLong);
  return at::one_hot((targets_of(samples) + wrong) % kMeanClasses, kMeanClasses).to(at::kFloat);
}

MeterSet set_of(const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<Meter>> meters;
  for (const auto& name : names) meters.push_back(testing::make_meter(name));
  return MeterSet(std::move(meters));
}

// Adds samples followed by padding. The padding is predicted correctly, so that counting it would show.
void add_rows(MeterSet& meters, const at::Tensor& samples, std::int64_t padding, std::int64_t global_rows) {
  const at::Tensor all = at::concat({samples, at::full({padding}, 1, at::kLong)});
  const auto valid = samples.numel();
  const double loss =
      valid == 0 ? std::numeric_limits<double>::quiet_NaN() : samples.to(at::kDouble).mean().item<double>();
  meters.add(
      {.inputs = {all}, .targets = {targets_of(all)}, .valid = valid, .global_rows = global_rows},
      {.outputs = {logits_of(all)}, .loss = at::full({}, loss, at::kDouble), .weight = static_cast<double>(valid)});
}

void add_loss(MeterSet& meters, std::int64_t rows, double loss) {
  Batch batch;
  batch.valid = rows;
  meters.add(batch, {.loss = at::full({}, loss, at::kDouble), .weight = batch.weight()});
}

class MetersAcrossRanks : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MetersAcrossRanks, ::testing::Range(1, 5));

TEST_P(MetersAcrossRanks, MeansAreExactWithUnevenAndEmptyShares) {
  testing::run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    // 11 samples in batches of 3: the last batch has 2, so with 3 and 4 ranks some shares are only padding.
    BatchSampler sampler(
        {.samples = kMeanSamples, .global_batch = 3, .seed = 5, .rank = group->rank(), .size = group->size()});
    MeterSet meters = set_of({"loss", "accuracy"});
    for (std::int64_t cursor = 0; cursor < sampler.batches(); ++cursor) {
      const auto share = sampler.share(0, cursor);
      const std::vector<std::int64_t> samples(share.indices.begin(), share.indices.begin() + share.valid);
      const auto padding = static_cast<std::int64_t>(share.indices.size()) - share.valid;
      add_rows(meters, at::tensor(samples, at::kLong), padding, share.global_rows);
    }
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 5.0), Pair("accuracy", 7.0 / 11)));
  });
}

TEST_P(MetersAcrossRanks, RanksWithMoreSamplesCountMore) {
  testing::run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    // Rank r has r + 1 samples with loss r, so a mean of the ranks' means would give a different number.
    const auto rows = group->rank() + 1;
    MeterSet meters = set_of({"loss"});
    add_loss(meters, rows, group->rank());
    double sum = 0, weight = 0;
    for (int rank = 0; rank < group->size(); ++rank) sum += rank * (rank + 1), weight += rank + 1;
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", sum / weight)));
  });
}

void alone(const testing::RankBody& body) { testing::run_ranks("inproc", 1, body); }

TEST(Meters, PaddingDoesNotCount) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"loss", "accuracy"});
    add_rows(meters, at::arange(0, 4, at::kLong), 5, 4);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 1.5), Pair("accuracy", 0.5)));
  });
}

TEST(Meters, ABatchOfOnlyPaddingDoesNotCount) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"loss", "accuracy"});
    add_rows(meters, at::arange(1, 3, at::kLong), 0, 2);
    add_rows(meters, at::arange(0, 0, at::kLong), 1, 2);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 1.5), Pair("accuracy", 1.0)));
  });
}

TEST(Meters, TakingStartsANewMean) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"loss"});
    add_loss(meters, 2, 8.0);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 8.0)));
    add_loss(meters, 1, 3.0);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 3.0)));
  });
}

TEST(Meters, NothingAddedReadsZero) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"loss", "accuracy"});
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 0.0), Pair("accuracy", 0.0)));
  });
}

// A loss on the meta device cannot be read at all.
TEST(Meters, LeaveALossOnItsDeviceUntilTheyAreRead) {
  alone([](const CommunicatorPtr& group) {
    for (const auto* name : {"loss", "perplexity", "moving_average"}) {
      MeterSet meters = set_of({name});
      EXPECT_NO_THROW(meters.add({.valid = 3}, {.loss = at::empty({}, at::kMeta), .weight = 3})) << name;
      EXPECT_ANY_THROW(meters.take(*group)) << name;
    }
  });
}

TEST(Meters, AddAllBatchesEvenIfThereAreMoreThanTheyKeep) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"loss"});
    for (int i = 0; i < 3000; ++i) add_loss(meters, 2, i);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("loss", 2999 / 2.0)));
  });
}

// A diverged run must not look like a good one.
TEST(Meters, ALossThatIsNotANumberStaysOne) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"loss"});
    add_loss(meters, 1, 1.0);
    add_loss(meters, 1, std::numeric_limits<double>::quiet_NaN());
    EXPECT_TRUE(std::isnan(meters.take(*group)[0].second));
  });
}

TEST(Meters, MetricsAreInTheOrderOfTheMeters) {
  alone([](const CommunicatorPtr& group) {
    std::vector<std::unique_ptr<Meter>> two;
    two.push_back(testing::make_meter("accuracy"));
    two.push_back(std::make_unique<MeanMeter>(
        "rows", [](const Batch& batch, const Step::Result&, Mean& mean) { mean.add(1.0 * batch.valid, 1); }));
    MeterSet meters(std::move(two));
    add_rows(meters, at::arange(1, 3, at::kLong), 0, 2);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("accuracy", 1.0), Pair("rows", 2.0)));
  });
}

TEST(Meters, TokensOfASequenceCountOneByOne) {
  // Two sequences of three tokens; the last token of the second is wrong.
  const at::Tensor target = at::tensor({0, 1, 2, 2, 1, 0}, at::kLong).reshape({2, 3});
  const at::Tensor predicted = at::tensor({0, 1, 2, 2, 1, 1}, at::kLong).reshape({2, 3});
  const at::Tensor output = at::one_hot(predicted, 3).to(at::kFloat);
  EXPECT_DOUBLE_EQ(testing::metric_of("accuracy", output, target), 5.0 / 6);
  alone([&](const CommunicatorPtr& group) {
    const auto meter = testing::make_meter("accuracy");
    Batch batch = testing::batch_of(target);
    batch.valid = 1;
    meter->add(batch, {.outputs = {output}});
    EXPECT_EQ(meter->take(*group)[0].second, 1) << "the second sequence is padding";
  });
}

TEST(Meters, AccuracyRefusesATargetThatIsNoClass) {
  EXPECT_THROW(testing::metric_of("accuracy", at::full({2, 3}, 1.0), at::full({2, 3}, 1.0)), ConfigError);
  EXPECT_THROW(testing::metric_of("mse", at::full({2, 3}, 1.0), at::full({2}, 1.0)), ConfigError);
}

TEST(Perplexity, IsTheExponentialOfTheMeanLoss) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"perplexity"});
    add_loss(meters, 3, 1.0);
    add_loss(meters, 1, 5.0);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("perplexity", std::exp(2.0))));
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("perplexity", 0.0))) << "nothing added";
  });
}

TEST(Mse, IsTheMeanOfTheSquares) {
  const at::Tensor output = at::tensor({1.0, 2.0, 3.0, 5.0}, at::kFloat).reshape({2, 2});
  const at::Tensor target = at::tensor({1.0, 0.0, 4.0, 2.0}, at::kFloat).reshape({2, 2});
  EXPECT_EQ(testing::metric_of("mse", output, target), 14.0 / 4);
  EXPECT_EQ(testing::metrics_of("{name: mse, root: true}", output, target)[0],
            (Metrics::value_type{"rmse", std::sqrt(3.5)}));
}

// The mean of {1, 3} is 2, and its deviation the square root of ((1 - 2)^2 + (3 - 2)^2) / (2 - 1).
TEST(Average, HasMeanAndDeviation) {
  const at::Tensor values = testing::numbers({1, 3}), others = testing::numbers({5, 5});
  EXPECT_THAT(testing::metrics_of("average", values, others),
              ElementsAre(Pair("output_mean", 2.0), Pair("output_std", std::sqrt(2.0))));
  EXPECT_THAT(testing::metrics_of("{name: average, of: target}", values, others),
              ElementsAre(Pair("target_mean", 5.0), Pair("target_std", 0.0)));
}

TEST(Average, DoesNotLoseASmallDeviationNextToALargeMean) {
  const at::Tensor values = testing::numbers({1e15 + 1, 1e15 + 3, 1e15 + 5});
  EXPECT_THAT(testing::metrics_of("average", values, values),
              ElementsAre(Pair("output_mean", 1e15 + 3), Pair("output_std", 2.0)));
}

TEST(Average, ExcludesIgnoredTargets) {
  alone([](const CommunicatorPtr& group) {
    const auto target = testing::integers({2, 4, kIgnored, 6, kIgnored, kIgnored}).view({2, 3});
    Batch batch{.targets = {target}, .valid = 2, .global_rows = 2, .row_weights = testing::numbers({2, 1})};
    MeterSet meters = set_of({"{name: average, of: target}", "{name: average, of: output}"});
    meters.add(batch, {.outputs = {target.to(at::kDouble).unsqueeze(2)}});
    const auto metrics = meters.take(*group);
    EXPECT_EQ(metrics.at(0).second, 4) << "of 2, 4 and 6";
    EXPECT_EQ(metrics.at(2).second, 4);
  });
}

TEST(Average, HasNoDeviationForOneValue) {
  EXPECT_THAT(testing::metrics_of("average", testing::numbers({7}), testing::numbers({7})),
              ElementsAre(Pair("output_mean", 7.0), Pair("output_std", 0.0)));
}

// After 1, 3, 5, 4, 0, a window of 3 contains 5, 4, 0; then 4, 0, 8.
TEST(MovingAverage, IsOfTheLastBatchesAndMovesOn) {
  alone([](const CommunicatorPtr& group) {
    MeterSet meters = set_of({"{name: moving_average, window: 3}"});
    for (const double loss : {1, 3, 5, 4, 0}) add_loss(meters, 2, loss);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("moving_loss", 3.0), Pair("moving_loss_std", std::sqrt(7.0))));
    add_loss(meters, 2, 8);
    EXPECT_THAT(meters.take(*group), ElementsAre(Pair("moving_loss", 4.0), Pair("moving_loss_std", 4.0)));
  });
}

TEST(TimeMeter, ReportsTheSlowestRank) {
  testing::run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    TimeMeter::Clock::time_point now{};
    TimeMeter meter([&] { return now; });
    for (int batch = 0; batch < 4; ++batch) meter.add({}, {});
    now += std::chrono::seconds(2 + 2 * group->rank());
    EXPECT_THAT(meter.take(*group), ElementsAre(Pair("total_seconds", 6.0), Pair("seconds_per_batch", 1.5)));
    now += std::chrono::seconds(1);
    EXPECT_THAT(meter.take(*group), ElementsAre(Pair("total_seconds", 1.0), Pair("seconds_per_batch", 0.0)));
  });
}

}  // namespace
}  // namespace phalanx
