// SPDX-License-Identifier: Apache-2.0
// Tests clipping by norm and by value.
#include "engine/optim/clip.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/testing/decorator.h"
#include "framework/comm/communicator.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::no_other_slices;
using testing::Recorder;

// Returns the gradients that the inner optimizer sees.
struct Clipped {
  explicit Clipped(ClipLimits limits, SumOverSlices sum = no_other_slices)
      : clip(std::unique_ptr<Optimizer>(recorder = new Recorder), limits, std::move(sum)) {}

  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& gradients) {
    std::vector<Slice> slices;
    for (const auto& gradient : gradients) slices.push_back({at::zeros(gradient.sizes()), gradient.clone()});
    clip.attach(slices);
    clip.update();
    return recorder->seen;
  }

  Recorder* recorder;
  Clip clip;
};

TEST(Clip, LeavesSmallGradientsAsTheyAre) {
  Clipped clipped({.norm = 5.1, .value = 4});
  const auto gradients = at::tensor({3.0F, -4.0F});
  EXPECT_TRUE(at::equal(clipped({gradients})[0], gradients));
  EXPECT_EQ(clipped.clip.norm(), 5);
}

TEST(Clip, IgnoresElementsBetweenParameters) {
  Clip clip(std::make_unique<Recorder>(), {.norm = 5.1}, no_other_slices);
  clip.attach({{at::zeros({6}),
                at::tensor({3.0F, 100.0F, 100.0F, 0.0F, -4.0F, 100.0F}),
                {{"a", {1}, 0, 1, 0}, {"b", {2}, 3, 2, 0}}}});
  clip.update();
  EXPECT_EQ(clip.norm(), 5);
}

TEST(Clip, LimitsEachGradientByValue) {
  Clipped clipped({.value = 2});
  EXPECT_TRUE(at::equal(clipped({at::tensor({3.0F, -4.0F, 1.5F})})[0], at::tensor({2.0F, -2.0F, 1.5F})));
  EXPECT_TRUE(std::isnan(clipped.clip.norm())) << "not computed, since nothing needs it";
}

TEST(Clip, LimitsTheNormAndThenEachGradient) {
  Clipped clipped({.norm = 1, .value = 0.7});
  EXPECT_TRUE(at::allclose(clipped({at::tensor({3.0F, -4.0F})})[0], at::tensor({0.6F, -0.7F})));
}

TEST(Clip, SaysWhenTheNormIsNotFiniteAndLeavesTheGradients) {
  const float infinite = std::numeric_limits<float>::infinity();
  Clipped clipped({.norm = 1});
  const auto gradients = at::tensor({3.0F, infinite});
  EXPECT_TRUE(at::equal(clipped({gradients})[0], gradients));
  EXPECT_FALSE(clipped.clip.finite());
  clipped({at::tensor({3.0F})});
  EXPECT_TRUE(clipped.clip.finite()) << "it describes the last update";
  clipped({at::tensor({std::nanf("")})});
  EXPECT_FALSE(clipped.clip.finite());
}

// The square of each gradient exceeds the range of float.
TEST(Clip, FindsNormsWhoseSquareOverflowsAFloat) {
  Clipped clipped({.norm = 1});
  EXPECT_TRUE(at::allclose(clipped({at::tensor({3e30F, 4e30F})})[0], at::tensor({0.6F, 0.8F})));
  EXPECT_NEAR(clipped.clip.norm(), 5e30, 1e25);
}

// Each rank has a shard of the gradients.
TEST(Clip, UsesTheNormOverAllRanks) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    Clipped clipped({.norm = 1}, [&](at::Tensor& sums) { group->all_reduce(sums, Reduction::kSum).wait(); });
    const auto ours = clipped({at::tensor({group->rank() == 0 ? 3.0F : 4.0F})});
    EXPECT_EQ(clipped.clip.norm(), 5);
    EXPECT_NEAR(ours[0].item<float>(), group->rank() == 0 ? 0.6 : 0.8, 1e-6);
  });
}

}  // namespace
}  // namespace phalanx
