// SPDX-License-Identifier: Apache-2.0
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>

#include "engine/loss/loss.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kRows = 5, kLength = 4, kClasses = 3;

std::shared_ptr<const Loss> with_smoothing(double share) {
  const std::string yaml = "{name: cross_entropy, label_smoothing: " + std::to_string(share) + "}";
  return config::load_as<Losses::Choice>("loss", yaml, "test.yaml").make();
}

// Computes the definition in double.
double by_hand(const at::Tensor& logits, const at::Tensor& target, double smoothing) {
  const auto scores = logits.reshape({-1, kClasses}).to(at::kDouble);
  const auto classes = target.flatten();
  double sum = 0;
  for (std::int64_t i = 0; i < classes.size(0); ++i) {
    double total = 0;
    for (std::int64_t c = 0; c < kClasses; ++c) total += std::exp(scores[i][c].item<double>());
    for (std::int64_t c = 0; c < kClasses; ++c) {
      const double wanted = smoothing / kClasses + (c == classes[i].item<std::int64_t>() ? 1 - smoothing : 0);
      sum -= wanted * (scores[i][c].item<double>() - std::log(total));
    }
  }
  return sum / static_cast<double>(classes.size(0));
}

class CrossEntropy : public ::testing::Test {
 protected:
  void SetUp() override {
    at::manual_seed(1);
    logits_ = at::randn({kRows, kLength, kClasses});
    target_ = at::randint(kClasses, {kRows, kLength}, at::kLong);
  }

  std::shared_ptr<const Loss> loss_ = Losses::Choice("cross_entropy").make();
  at::Tensor logits_, target_;
};

TEST_F(CrossEntropy, IsTheMeanOverAllTargets) {
  const auto last = logits_.select(1, 3), last_target = target_.select(1, 3);
  for (const double smoothing : {0.0, 0.2}) {
    const auto loss = with_smoothing(smoothing);
    EXPECT_NEAR(loss->mean(last, last_target).item<double>(), by_hand(last, last_target, smoothing), 1e-6);
    EXPECT_NEAR(loss->mean(logits_, target_).item<double>(), by_hand(logits_, target_, smoothing), 1e-6);
  }
}

// The weight of a rank's share is its number of samples, regardless of the number of targets in each sample.
TEST_F(CrossEntropy, SharesWeightedBySamplesAddUpToTheWhole) {
  double sum = 0;
  for (const auto& [begin, rows] : {std::pair{0, 1}, {1, 3}, {4, 1}}) {
    sum += rows * loss_->mean(logits_.narrow(0, begin, rows), target_.narrow(0, begin, rows)).item<double>();
  }
  EXPECT_NEAR(sum / kRows, loss_->mean(logits_, target_).item<double>(), 1e-6);
}

TEST_F(CrossEntropy, EveryTargetHasAGradientAtItsOwnLogits) {
  const auto logits = logits_.clone().requires_grad_();
  loss_->mean(logits, target_).backward();
  auto expected = logits_.softmax(-1);
  expected.scatter_add_(-1, target_.unsqueeze(-1), at::zeros({kRows, kLength, 1}) - 1);
  EXPECT_TRUE(at::allclose(logits.grad(), expected / static_cast<double>(kRows * kLength), 1e-5, 1e-7));
}

TEST_F(CrossEntropy, LossOfClassSharesIsTheMeanOfTheirLosses) {
  const auto logits = logits_.select(1, 0), one = target_.select(1, 0), other = target_.select(1, 1);
  const auto share = at::zeros({kRows, kClasses});
  for (std::int64_t i = 0; i < kRows; ++i) {
    share[i][one[i].item<std::int64_t>()] += 0.7;
    share[i][other[i].item<std::int64_t>()] += 0.3;
  }
  for (const double smoothing : {0.0, 0.2}) {
    const auto loss = with_smoothing(smoothing);
    EXPECT_NEAR(loss->mean(logits, share).item<double>(),
                0.7 * by_hand(logits, one, smoothing) + 0.3 * by_hand(logits, other, smoothing), 1e-6);
  }
}

TEST_F(CrossEntropy, RefusesTargetsThatDoNotFitTheLogits) {
  const auto refused = ThrowsMessage<ConfigError>(HasSubstr("cross_entropy takes logits [n, ..., classes]"));
  EXPECT_THAT([&] { loss_->mean(logits_, target_.select(1, 0)); }, refused);
  EXPECT_THAT([&] { loss_->mean(logits_.transpose(1, 2), target_); }, refused) << "classes come last";
  EXPECT_THAT([&] { loss_->mean(logits_.select(1, 0).select(1, 0), target_); }, refused);
  EXPECT_THAT([&] { loss_->mean(logits_.select(1, 0), target_); }, refused);
}

}  // namespace
}  // namespace phalanx
