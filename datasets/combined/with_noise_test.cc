// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/testing/splits.h"
#include "framework/base/config/config.h"

namespace phalanx {
namespace {

constexpr const char* kDigits = "{name: digits, train_samples: 300, test_samples: 40, side: 16}";

TEST(WithNoise, AddsNormalNumbersAsAnInput) {
  const auto splits = testing::load_splits(std::string("{name: with_noise, size: 101, of: ") + kDigits + "}");
  const auto& spec = splits.train->spec();
  ASSERT_EQ(spec.inputs.size(), 2u);
  EXPECT_EQ(spec.inputs[1].shape, std::vector<std::int64_t>{101});
  const auto batch = testing::read_first(*splits.train, 300),
             plain = testing::read_first(*testing::load_splits(kDigits).train, 300);
  EXPECT_TRUE(at::equal(batch.inputs[0], plain.inputs[0]));
  EXPECT_TRUE(at::equal(batch.targets[0], plain.targets[0]));
  const at::Tensor noise = batch.inputs[1].to(at::kDouble);
  EXPECT_NEAR(noise.mean().item<double>(), 0, 0.02);
  EXPECT_NEAR(noise.std().item<double>(), 1, 0.02);
  EXPECT_NEAR(noise.abs().lt(1).to(at::kDouble).mean().item<double>(), 0.6827, 0.01);
  EXPECT_NEAR((noise.select(1, 0) * noise.select(1, 1)).mean().item<double>(), 0, 0.2) << "numbers of a pair";
}

TEST(WithNoise, IsDrawnForEachEpochInTrainingAndOnceForTesting) {
  const auto splits = testing::load_splits(std::string("{name: with_noise, of: ") + kDigits + "}");
  const auto first = testing::read_first(*splits.train, 20, 1), again = testing::read_first(*splits.train, 10, 1),
             next = testing::read_first(*splits.train, 20, 2);
  EXPECT_TRUE(at::equal(first.inputs[1].narrow(0, 0, 10), again.inputs[1])) << "whatever else is in the batch";
  EXPECT_FALSE(at::equal(first.inputs[1], next.inputs[1]));
  EXPECT_TRUE(at::equal(testing::read_first(*splits.test, 20, 1).inputs[1],
                        testing::read_first(*splits.test, 20, 2).inputs[1]));
  EXPECT_TRUE(at::equal(testing::read_first(*splits.train->unchanged(), 20, 1).inputs[1],
                        testing::read_first(*splits.train->unchanged(), 20, 2).inputs[1]));
}

}  // namespace
}  // namespace phalanx
