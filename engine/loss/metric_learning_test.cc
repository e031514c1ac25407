// SPDX-License-Identifier: Apache-2.0
// Tests contrastive and triplet by hand; tests/zoo/losses_test.cc compares them with torch's.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/loss/loss.h"
#include "engine/testing/loss.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor points(const std::vector<double>& numbers, at::IntArrayRef shape) {
  return at::tensor(numbers, at::kDouble).view(shape);
}
at::Tensor classes(const std::vector<std::int64_t>& numbers, at::IntArrayRef shape) {
  return at::tensor(numbers, at::kLong).view(shape);
}

// The distances are 5, 0.5 and 5.
TEST(Contrastive, PullsWithinAClassAndPushesUpToTheMargin) {
  const auto output = points({0, 0, 3, 4, 1, 1, 1, 1.5, 0, 0, 4, 3}, {3, 2, 2});
  const auto target = classes({7, 7, 1, 2, 3, 4}, {3, 2});
  EXPECT_NEAR(testing::mean_loss("contrastive", output, target), (25 + 0.25 + 0) / 2 / 3, 1e-4);
  EXPECT_NEAR(testing::mean_loss("{name: contrastive, margin: 6}", output, target), (25 + 5.5 * 5.5 + 1) / 2 / 3, 1e-4);
}

TEST(Contrastive, HasAGradientForIdenticalEmbeddings) {
  const auto output = at::zeros({2, 2, 3}).requires_grad_();
  testing::make_loss("contrastive")->mean(output, classes({1, 1, 1, 2}, {2, 2})).backward();
  EXPECT_TRUE(output.grad().isfinite().all().item<bool>());
}

// The distances from the anchor are 1 and 3, then 2 and 1.
TEST(Triplet, ComparesTheTwoDistancesOfAnAnchor) {
  const auto output = points({0, 0, 1, 0, 0, 3, 1, 1, 1, 3, 2, 1}, {2, 3, 2});
  const auto target = classes({5, 5, 6, 1, 1, 0}, {2, 3});
  EXPECT_NEAR(testing::mean_loss("triplet", output, target), (0 + 4 - 1 + 0.2) / 2, 1e-9);
  EXPECT_NEAR(testing::mean_loss("{name: triplet, distance: euclidean, margin: 2.5}", output, target), (0.5 + 3.5) / 2,
              1e-4);
}

// Points on a line: class 0 at 0 and 2, class 1 at 3 and 10, and a point at 50 that is alone in class 2.
TEST(Triplet, TakesTheHardestOfABatch) {
  const auto output = points({0, 2, 3, 10, 50}, {5, 1});
  const auto target = classes({0, 0, 1, 1, 2}, {5});
  const std::string yaml = "{name: triplet, mining: batch_hard, distance: euclidean, margin: 1}";
  const double expected = 0 + (2 - 1 + 1) + (7 - 1 + 1) + (7 - 8 + 1);  // the first term is 2 - 3 + 1
  EXPECT_NEAR(testing::mean_loss(yaml, output, target), expected / 5, 1e-4);
  const auto half = output.slice(0, 0, 4).view({2, 2, 1}), half_target = target.slice(0, 0, 4).view({2, 2});
  EXPECT_NEAR(testing::mean_loss(yaml, half, half_target), expected / 4, 1e-4)
      << "members of pairs are embeddings as others";
}

TEST(Triplet, IsZeroIfABatchHasNoTriplet) {
  const auto output = at::randn({3, 2}).requires_grad_();
  const auto loss = testing::make_loss("{name: triplet, mining: batch_hard}")->mean(output, classes({1, 1, 1}, {3}));
  EXPECT_EQ(loss.item<double>(), 0);
  loss.backward();
  EXPECT_EQ(output.grad().abs().sum().item<double>(), 0);
}

TEST(MetricLearning, LossesRefuseOtherShapes) {
  const auto pairs = at::zeros({4, 2, 3});
  EXPECT_THAT([&] { testing::mean_loss("triplet", pairs, classes({0, 1, 0, 1, 0, 1, 0, 1}, {4, 2})); },
              ThrowsMessage<ConfigError>(HasSubstr("triplet with mining: given takes embeddings [n, 3, width]")));
  EXPECT_THAT([&] { testing::mean_loss("contrastive", pairs, classes({0, 1, 0, 1}, {4})); },
              ThrowsMessage<ConfigError>(HasSubstr("contrastive takes embeddings [n, 2, width]")));
  EXPECT_THAT([&] { testing::mean_loss("{name: triplet, mining: batch_hard}", pairs, classes({0, 1, 0, 1}, {4})); },
              ThrowsMessage<ConfigError>(HasSubstr("triplet takes embeddings [n, ..., width]")));
}

}  // namespace
}  // namespace phalanx
