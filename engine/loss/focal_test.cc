// SPDX-License-Identifier: Apache-2.0
// Compares focal with its definition; tests/zoo/losses_test.cc compares it with torchvision's.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <string>

#include "engine/loss/loss.h"
#include "engine/testing/loss.h"
#include "framework/base/batch.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor logits() {
  at::manual_seed(3);
  return at::randn({5, 4, 3}, at::kDouble);
}
at::Tensor classes() {
  at::manual_seed(4);
  return at::randint(3, {5, 4}, at::kLong);
}

TEST(Focal, WithoutGammaIsCrossEntropy) {
  const auto output = logits(), target = classes(), yes = target.eq(1).to(at::kDouble);
  EXPECT_NEAR(testing::make_loss("{name: focal, gamma: 0}")->mean(output, target).item<double>(),
              testing::make_loss("cross_entropy")->mean(output, target).item<double>(), 1e-12);
  EXPECT_NEAR(testing::make_loss("{name: focal, gamma: 0}")->mean(output.select(2, 0), yes).item<double>(),
              testing::make_loss("binary_cross_entropy")->mean(output.select(2, 0), yes).item<double>(), 1e-12);
}

// Equation 5: - alpha (1 - p)^gamma log p, class by class.
TEST(Focal, FollowsItsDefinition) {
  const auto output = logits(), target = classes();
  const double alpha[] = {0.2, 0.7, 1};
  double sum = 0;
  const auto p = output.softmax(-1);
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 4; ++j) {
      const auto of = target[i][j].item<std::int64_t>();
      const double q = p[i][j][of].item<double>();
      sum -= alpha[of] * std::pow(1 - q, 1.5) * std::log(q);
    }
  }
  EXPECT_NEAR(
      testing::make_loss("{name: focal, gamma: 1.5, alpha: [0.2, 0.7, 1]}")->mean(output, target).item<double>(),
      sum / 20, 1e-12);
}

TEST(Focal, ExcludesIgnoredTargets) {
  const auto output = logits().flatten(0, 1).requires_grad_();
  const auto target = classes().flatten();
  const auto loss = testing::make_loss("focal");
  const double kept = loss->mean(output.slice(0, 3), target.slice(0, 3)).item<double>();
  target.slice(0, 0, 3).fill_(kIgnored);
  const auto mean = loss->mean(output, target);
  EXPECT_NEAR(mean.item<double>(), kept, 1e-12);
  mean.backward();
  EXPECT_EQ(output.grad().slice(0, 0, 3).abs().sum().item<double>(), 0);
  EXPECT_TRUE(output.grad().slice(0, 3).ne(0).all().item<bool>());
}

TEST(Focal, HasGradientsWhereALogitIsCertain) {
  for (const char* yaml : {"{name: focal, gamma: 0.5}", "{name: focal, gamma: 2}"}) {
    const auto sure = at::tensor({90.0F, -90.0F}).view({1, 2}).requires_grad_();
    testing::make_loss(yaml)->mean(sure, at::tensor({0}, at::kLong)).backward();
    EXPECT_TRUE(sure.grad().isfinite().all().item<bool>()) << yaml;
    const auto each = at::tensor({90.0F, -90.0F}).requires_grad_();
    testing::make_loss(yaml)->mean(each, at::tensor({1.0F, 0.0F})).backward();
    EXPECT_TRUE(each.grad().isfinite().all().item<bool>()) << yaml;
  }
}

TEST(Focal, RefusesWrongShapesAndNumbersOfWeights) {
  const auto output = logits(), target = classes();
  EXPECT_THAT([&] { testing::make_loss("focal")->mean(output, target.flatten()); },
              ThrowsMessage<ConfigError>(HasSubstr("focal takes logits [n, ..., classes]")));
  EXPECT_THAT([&] { testing::make_loss("{name: focal, alpha: [0.25]}")->mean(output, target); },
              ThrowsMessage<ConfigError>(HasSubstr("loss: alpha has 1 numbers, but there are 3 classes")));
  EXPECT_THAT([&] { testing::make_loss("{name: focal, alpha: [0.2, 0.3]}")->mean(output, output.sigmoid()); },
              ThrowsMessage<ConfigError>(HasSubstr("loss: alpha has 2 numbers")));
}

}  // namespace
}  // namespace phalanx
