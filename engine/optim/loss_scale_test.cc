// SPDX-License-Identifier: Apache-2.0
// Tests dynamic loss scaling. All ranks must react to a value that is found on one of them.
#include "engine/optim/loss_scale.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <string>

#include "engine/testing/decorator.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/comm/communicator.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::no_other_slices;
using testing::Recorder;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// A loss scale over two slices of one element each.
struct Scaled {
  explicit Scaled(const LossScaleConfig& config, LossScale::LargestOfRanks largest = no_other_slices)
      : scale(std::unique_ptr<Optimizer>(recorder = new Recorder), config, std::move(largest)) {
    scale.attach(slices);
  }

  void update(float first, float second) {
    slices[0].gradients.fill_(first);
    slices[1].gradients.fill_(second);
    scale.update();
  }

  std::vector<Slice> slices{{at::zeros({1}), at::zeros({1})}, {at::zeros({1}), at::zeros({1})}};
  Recorder* recorder;
  LossScale scale;
};

TEST(LossScale, TheInnerOptimizerSeesGradientsOfTheLoss) {
  Scaled scaled({.initial = 1024});
  scaled.update(1024, -512);
  EXPECT_EQ(scaled.recorder->seen[0].item<float>(), 1);
  EXPECT_EQ(scaled.recorder->seen[1].item<float>(), -0.5);
  EXPECT_FALSE(scaled.scale.skipped());
}

TEST(LossScale, UpdatesThatAreNotFiniteAreSkipped) {
  for (const float bad : {kInfinite, -kInfinite, std::nanf("")}) {
    Scaled scaled({.initial = 1024});
    scaled.update(1, bad);
    EXPECT_TRUE(scaled.scale.skipped());
    EXPECT_EQ(scaled.scale.scale(), 512);
    EXPECT_EQ(scaled.scale.skipped_updates(), 1);
    EXPECT_EQ(scaled.scale.updates(), 0);
    for (const auto& slice : scaled.slices) {
      EXPECT_EQ(slice.values.item<float>(), 0);
      EXPECT_EQ(slice.gradients.item<float>(), 0);
    }
    scaled.update(1, 1);
    EXPECT_FALSE(scaled.scale.skipped());
    EXPECT_EQ(scaled.scale.updates(), 1);
  }
}

TEST(LossScale, GrowsAfterGoodUpdatesInARow) {
  Scaled scaled({.initial = 8, .growth_interval = 3});
  std::vector<double> scales;
  for (const float gradient : {1.0F, 1.0F, kInfinite, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F}) {
    scaled.update(1, gradient);
    scales.push_back(scaled.scale.scale());
  }
  EXPECT_THAT(scales, ::testing::ElementsAre(8, 8, 4, 4, 4, 8, 8, 8, 16));
}

// If gradients overflow on a rank or on all of them, all ranks skip the update.
TEST(LossScale, AllRanksSkipAnUpdateThatIsNotFiniteOnOne) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    Scaled scaled({.initial = 8}, [&](at::Tensor& of_ranks) { group->all_reduce(of_ranks, Reduction::kMax).wait(); });
    scaled.update(1, group->rank() == 1 ? kInfinite : 1);
    EXPECT_TRUE(scaled.scale.skipped());
    EXPECT_EQ(scaled.scale.scale(), 4);
    scaled.update(1, 1);
    EXPECT_FALSE(scaled.scale.skipped());
    scaled.update(kInfinite, 1);
    EXPECT_TRUE(scaled.scale.skipped());
    EXPECT_EQ(scaled.scale.scale(), 2);
    EXPECT_EQ(scaled.scale.skipped_updates(), 2);
  });
}

TEST(LossScale, ContinuesFromItsProgress) {
  const LossScaleConfig config{.initial = 8, .growth_interval = 3};
  Scaled first(config), second(config);
  first.update(1, kInfinite);
  first.update(1, 1);
  first.update(1, 1);
  second.scale.set_progress(first.scale.progress());
  EXPECT_EQ(second.scale.scale(), 4);
  EXPECT_EQ(second.scale.skipped_updates(), 1);
  second.update(1, 1);
  EXPECT_EQ(second.scale.scale(), 8);
}

// The run that is resumed had a larger growth_interval.
TEST(LossScale, GrowsAfterItHasResumedWithAShorterInterval) {
  Scaled scaled({.initial = 8, .growth_interval = 3});
  scaled.scale.set_progress({4, 5, 0});
  scaled.update(1, 1);
  EXPECT_EQ(scaled.scale.scale(), 8);
  scaled.update(1, 1);
  EXPECT_EQ(scaled.scale.scale(), 8);
}

TEST(LossScale, FailsWhenNoScaleHelps) {
  Scaled scaled({.initial = 1});
  const auto go = [&] {
    for (int i = 0; i < 100; ++i) scaled.update(kInfinite, 0);
  };
  EXPECT_THAT(go, ::testing::ThrowsMessage<Error>(::testing::HasSubstr("the gradients are not finite, however small")));
}

TEST(LossScale, ARankWithoutSlicesTakesPart) {
  LossScale scale(std::make_unique<Recorder>(), {.initial = 8}, [](at::Tensor& sums) { sums.add_(1); });
  scale.attach({});
  scale.update();
  EXPECT_TRUE(scale.skipped());
}

TEST(LossScale, RefusesProgressOfAnotherSize) {
  EXPECT_THROW(Scaled(LossScaleConfig{}).scale.set_progress({1, 2}), DataError);
}

TEST(LossScale, RefusesKeysThatAreTooLargeForItsTensors) {
  const auto load = [](const std::string& text) {
    LossScaleConfig config;
    config::load_text(config, text, "a test");
  };
  EXPECT_NO_THROW(load("{initial: 1e+38, growth_interval: 2147483647}"));
  EXPECT_THROW(load("initial: 1e+39"), ConfigError);
  EXPECT_THROW(load("growth_interval: 2147483648"), ConfigError);
}

TEST(LossScale, RefusesABackoffOf1) {
  EXPECT_THROW(LossScale(std::make_unique<Recorder>(), {.backoff = 1}, no_other_slices), ConfigError);
}

}  // namespace
}  // namespace phalanx
