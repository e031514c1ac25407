// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <cmath>

#include "engine/loss/loss.h"
#include "engine/testing/loss.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

at::Tensor numbers(const std::vector<float>& values) { return at::tensor(values); }

TEST(Losses, AreMeansOverElementsForNumbers) {
  const auto output = numbers({1, 2, 5}), target = numbers({1, 0, 1});
  EXPECT_FLOAT_EQ(testing::mean_loss("mse", output, target), (0 + 4 + 16) / 3.0);
  EXPECT_FLOAT_EQ(testing::mean_loss("mae", output, target), (0 + 2 + 4) / 3.0);
  EXPECT_FLOAT_EQ(testing::mean_loss("huber", output, target), (0 + 1.5 + 3.5) / 3) << "beyond 1: |error| - 1/2";
  EXPECT_FLOAT_EQ(testing::mean_loss("{name: huber, delta: 3}", output, target), (0 + 2 + 7.5) / 3);
}

TEST(Losses, BinaryCrossEntropyIsElementwise) {
  const double yes = -std::log(1 / (1 + std::exp(-2.0))), no = -std::log(1 - 1 / (1 + std::exp(1.0)));
  EXPECT_NEAR(testing::mean_loss("binary_cross_entropy", numbers({2, -1}), numbers({1, 0})), (yes + no) / 2, 1e-6);
  EXPECT_NEAR(testing::mean_loss("binary_cross_entropy", numbers({2, -1}), at::tensor({1, 0}, at::kLong)),
              (yes + no) / 2, 1e-6)
      << "targets may be integers";
}

TEST(Losses, ListNetIsLowestForTheOrderOfTheRelevances) {
  const auto relevance = numbers({0, 1, 3}).view({1, 3});
  const double best = testing::mean_loss("list_net", relevance, relevance);
  double entropy = 0, sum = 0;
  for (const double r : {0.0, 1.0, 3.0}) sum += std::exp(r);
  for (const double r : {0.0, 1.0, 3.0}) entropy -= std::exp(r) / sum * std::log(std::exp(r) / sum);
  EXPECT_NEAR(best, entropy, 1e-6);
  EXPECT_GT(testing::mean_loss("list_net", numbers({3, 1, 0}).view({1, 3}), relevance), best);
}

TEST(Losses, RefuseTargetsOfAnotherShape) {
  for (const char* name : {"mse", "mae", "huber", "binary_cross_entropy", "list_net"}) {
    EXPECT_THROW(testing::mean_loss(name, at::full({2, 1}, 1.0), at::full({2}, 1.0)), ConfigError) << name;
  }
}

TEST(Losses, AutoLeavesTheChoiceToTheTask) { EXPECT_EQ(Losses::Choice("auto").make(), nullptr); }

}  // namespace
}  // namespace phalanx
