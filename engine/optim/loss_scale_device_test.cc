// SPDX-License-Identifier: Apache-2.0
// Tests loss scaling on a (fake) device, which decides itself whether an update is skipped.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/clip.h"
#include "engine/optim/loss_scale.h"
#include "engine/testing/decorator.h"
#include "engine/testing/optimizer.h"
#include "framework/base/error.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx {
namespace {

using testing::no_other_slices;
using testing::Streams;

const at::Device kDevice(c10::kCUDA, 0);
constexpr std::int64_t kElements = 200;

// Makes LossScale wait for each decision.
class Waiting final : public OptimizerDecorator {
 public:
  using OptimizerDecorator::OptimizerDecorator;
};

// Updates of one slice with clipped and scaled gradients.
struct Training {
  Training(const std::string& optimizer, bool waits, const LossScaleConfig& config = {.initial = 1024}) {
    auto inner = testing::make_optimizer(optimizer);
    if (waits) inner = std::make_unique<Waiting>(std::move(inner));
    auto clipped =
        std::make_unique<Clip>(std::move(inner), ClipLimits{.norm = 3}, no_other_slices, Clip::Parts(), kDevice);
    clip = clipped.get();
    scale = std::make_unique<LossScale>(std::move(clipped), config, no_other_slices, kDevice);
    const at::Tensor values = at::linspace(-1, 1, kElements).to(kDevice);
    slices = {{values, at::zeros_like(values)}};
    scale->attach(slices);
  }

  void update(std::int64_t number, bool overflows) {
    slices[0]
        .gradients.fill_(static_cast<double>(number))
        .mul_(slices[0].values)
        .add_(1)
        .mul_(scale->scale_on_device());
    if (overflows) slices[0].gradients.narrow(0, number, 1).fill_(std::numeric_limits<float>::infinity());
    scale->update();
  }

  std::vector<at::Tensor> everything() {
    std::vector<at::Tensor> all{slices[0].values.to(at::kCPU), slices[0].gradients.to(at::kCPU)};
    for (const auto& state : scale->state()) all.push_back(state.values.to(at::kCPU));
    return all;
  }

  Clip* clip;
  std::unique_ptr<LossScale> scale;
  std::vector<Slice> slices;
};

class Skipping : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(OfOptimizers, Skipping,
                         ::testing::Values("{name: adam, lr: 0.01, weight_decay: 0.1}", "{name: adamw, lr: 0.01}",
                                           "{name: adamw, lr: 0.01, amsgrad: true}", "{name: sgd, lr: 0.01}",
                                           "{name: sgd, lr: 0.01, momentum: 0.9, dampening: 0.5}",
                                           "{name: adagrad, lr: 0.01, lr_decay: 0.1}",
                                           "{name: rmsprop, lr: 0.01, momentum: 0.5, weight_decay: 0.1}",
                                           "{name: lion, lr: 0.01, weight_decay: 0.1}",
                                           "{name: ftrl, lr: 0.01, l1: 0.1}"));

// The first updates and later ones overflow. After every update, both have the same bits.
TEST_P(Skipping, OnTheDeviceComputesTheSameAsWaiting) {
  Training waiting(GetParam(), /*waits=*/true, {.initial = 1024, .growth_interval = 3});
  Training skipping(GetParam(), /*waits=*/false, {.initial = 1024, .growth_interval = 3});
  for (std::int64_t number = 0; number < 14; ++number) {
    const bool overflows = number < 2 || number == 5 || number == 6 || number == 13;
    for (auto* one : {&waiting, &skipping}) one->update(number, overflows);
    const auto expected = waiting.everything(), got = skipping.everything();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_TRUE(at::equal(got[i], expected[i])) << number << ' ' << i;
    EXPECT_EQ(skipping.scale->progress(), waiting.scale->progress()) << number;
    EXPECT_EQ(skipping.scale->skipped(), overflows) << number;
    if (number < 2) continue;
    EXPECT_EQ(skipping.clip->norm(), waiting.clip->norm()) << number;
  }
  EXPECT_EQ(skipping.scale->updates(), 9);
  EXPECT_EQ(skipping.scale->skipped_updates(), 5);
}

// The 128th update is the first one that reads the scale that an earlier one has requested.
TEST(SkippingOnTheDevice, DoesNotWaitAfterTheFirstUpdate) {
  for (const std::string optimizer : {"{name: adamw, lr: 0.01}", "{name: lion, lr: 0.01}"}) {
    Training training(optimizer, /*waits=*/false);
    training.update(0, true);
    training.update(1, false);
    const auto before = Streams::global().host_waits();
    for (std::int64_t number = 2; number < 140; ++number) training.update(number, number % 20 == 0);
    EXPECT_EQ(Streams::global().host_waits(), before) << optimizer;
    EXPECT_EQ(training.scale->updates(), 133) << optimizer;
    EXPECT_GT(Streams::global().host_waits(), before) << "the host has read a number";
  }
}

TEST(SkippingOnTheDevice, ContinuesFromItsProgress) {
  Training first("{name: adam, lr: 0.01}", false), second("{name: adam, lr: 0.01}", false);
  for (std::int64_t number = 0; number < 5; ++number) first.update(number, number == 3);
  second.slices[0].values.copy_(first.slices[0].values);
  second.scale->set_progress(first.scale->progress());
  second.scale->set_updates(first.scale->updates());
  const auto from = first.scale->state(), to = second.scale->state();
  for (std::size_t i = 0; i < to.size(); ++i) to[i].values.copy_(from[i].values);
  for (std::int64_t number = 5; number < 8; ++number) {
    for (auto* one : {&first, &second}) one->update(number, number == 6);
  }
  EXPECT_TRUE(at::equal(second.everything()[0], first.everything()[0]));
  EXPECT_EQ(second.scale->updates(), first.scale->updates());
}

TEST(SkippingOnTheDevice, FailsSomeUpdatesAfterNoScaleHelps) {
  Training training("{name: adamw, lr: 0.01}", /*waits=*/false, {.initial = 1});
  training.update(0, false);
  const auto go = [&] {
    for (int i = 0; i < 200; ++i) training.update(1, true);
  };
  EXPECT_THAT(go, ::testing::ThrowsMessage<Error>(::testing::HasSubstr("the gradients are not finite, however small")));
}

}  // namespace
}  // namespace phalanx
