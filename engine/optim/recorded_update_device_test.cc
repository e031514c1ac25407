// SPDX-License-Identifier: Apache-2.0
// Tests updates that a graph of a (fake) device contains: they compute the same bits as updates that the host launches.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/optim/clip.h"
#include "engine/optim/ema.h"
#include "engine/optim/loss_scale.h"
#include "engine/testing/decorator.h"
#include "engine/testing/optimizer.h"
#include "framework/testing/fake_device/graph.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx {
namespace {

using ::testing::HasSubstr;
using testing::no_other_slices;

const at::Device kGraphDevice(c10::kCUDA, 0);  // fake

// Graphs are not recorded on the default stream.
c10::Stream pool_stream() { return c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(kGraphDevice); }

// Updates of a small network on the device, whose biases have half the learning rate. Steps are numbered from 0, and
// each one has its own learning rate and its own gradients.
class Updates {
 public:
  Updates(const std::string& optimizer, ClipLimits limits, bool scaled) {
    optimizer_ = testing::make_optimizer(optimizer, {{"bias$", 0.5, 0}});
    auto clip = std::make_unique<Clip>(std::move(optimizer_), limits, no_other_slices, Clip::Parts(), kGraphDevice);
    clip_ = clip.get();
    optimizer_ = std::move(clip);
    if (scaled) {
      auto scale = std::make_unique<LossScale>(
          std::move(optimizer_), LossScaleConfig{.initial = 1024, .growth_interval = 3}, no_other_slices, kGraphDevice);
      scale_ = scale.get();
      optimizer_ = std::move(scale);
    }
    const Bucket network = testing::small_network();
    slices_ = {{network.values.to(kGraphDevice), network.gradients.to(kGraphDevice), network.segments}};
    optimizer_->attach(slices_);
  }

  void launch(std::int64_t step, bool overflows) {
    prepare(step, overflows);
    optimizer_->update();
  }

  void record() {
    ASSERT_EQ(optimizer_->why_not_recorded(), "");
    optimizer_->prepare_replay();
    graph_.capture_begin();
    optimizer_->record(std::nullopt);
    graph_.capture_end();
  }

  void replay(std::int64_t step, bool overflows) {
    prepare(step, overflows);
    optimizer_->prepare_replay();
    graph_.replay();
    optimizer_->replayed();
  }

  std::vector<at::Tensor> everything() {
    std::vector<at::Tensor> all{slices_[0].values.to(at::kCPU), slices_[0].gradients.to(at::kCPU)};
    for (const auto& state : optimizer_->state()) all.push_back(state.values.to(at::kCPU));
    return all;
  }

  std::vector<double> numbers() const {
    std::vector<double> all{static_cast<double>(optimizer_->updates())};
    if (clip_->limits().norm > 0) all.push_back(clip_->norm());
    if (scale_ != nullptr) {
      for (const double number : scale_->progress()) all.push_back(number);
    }
    return all;
  }

 private:
  void prepare(std::int64_t step, bool overflows) {
    auto& gradients = slices_[0].gradients;
    gradients.copy_(testing::gradients_of(step, gradients.numel()), /*non_blocking=*/true);
    if (scale_ != nullptr) gradients.mul_(scale_->scale_on_device());
    if (overflows) gradients.narrow(0, step, 1).fill_(std::numeric_limits<float>::infinity());
    optimizer_->set_learning_rate(0.1 / static_cast<double>(3 + step));  // no float32 has this value
  }

  std::unique_ptr<Optimizer> optimizer_;
  Clip* clip_ = nullptr;
  LossScale* scale_ = nullptr;
  std::vector<Slice> slices_;
  testing::FakeGraph graph_;
};

void expect_same(Updates& got, Updates& expected, std::int64_t step) {
  const auto is = got.everything(), should_be = expected.everything();
  ASSERT_EQ(is.size(), should_be.size());
  for (std::size_t i = 0; i < is.size(); ++i) ASSERT_TRUE(at::equal(is[i], should_be[i])) << step << ' ' << i;
}

class RecordedUpdates : public ::testing::TestWithParam<std::string> {
 protected:
  const c10::StreamGuard stream_{pool_stream()};
};

INSTANTIATE_TEST_SUITE_P(OfOptimizers, RecordedUpdates,
                         ::testing::Values("{name: sgd, lr: 0.01}",
                                           "{name: sgd, lr: 0.01, momentum: 0.9, dampening: 0.5, weight_decay: 0.1}",
                                           "{name: adam, lr: 0.01, weight_decay: 0.1}",
                                           "{name: adamw, lr: 0.01, amsgrad: true}",
                                           "{name: adagrad, lr: 0.01, lr_decay: 0.1}"));

// Some updates between replays are launched, as for batches of another shape.
TEST_P(RecordedUpdates, ComputeTheSameBitsAsLaunchedOnes) {
  for (const ClipLimits limits : {ClipLimits{}, ClipLimits{.norm = 3}, ClipLimits{.value = 0.5}}) {
    Updates launched(GetParam(), limits, /*scaled=*/false), recorded(GetParam(), limits, /*scaled=*/false);
    for (std::int64_t step = 0; step < 10; ++step) {
      launched.launch(step, false);
      if (step == 2) recorded.record();
      if (step < 2 || step == 6) {
        recorded.launch(step, false);
      } else {
        recorded.replay(step, false);
      }
      expect_same(recorded, launched, step);
      EXPECT_EQ(recorded.numbers(), launched.numbers()) << step;
    }
  }
}

TEST_P(RecordedUpdates, AreSkippedIfGradientsOverflow) {
  Updates launched(GetParam(), {.norm = 3}, /*scaled=*/true), recorded(GetParam(), {.norm = 3}, /*scaled=*/true);
  for (std::int64_t step = 0; step < 14; ++step) {
    const bool overflows = step == 0 || step == 4 || step == 5 || step == 8;
    launched.launch(step, overflows);
    if (step == 3) recorded.record();
    if (step < 3 || step == 8) {
      recorded.launch(step, overflows);
    } else {
      recorded.replay(step, overflows);
    }
    expect_same(recorded, launched, step);
    if (step > 0 && step % 5 == 0) {
      EXPECT_EQ(recorded.numbers(), launched.numbers()) << step;
    }
  }
  EXPECT_EQ(recorded.numbers(), launched.numbers());
  EXPECT_EQ(recorded.numbers()[0], 10) << "14 updates, of which 4 are skipped";
}

TEST_P(RecordedUpdates, DoNotWaitForTheDevice) {
  Updates updates(GetParam(), {.norm = 3}, /*scaled=*/true);
  updates.launch(0, false);
  updates.record();
  updates.replay(1, false);
  const auto before = testing::Streams::global().host_waits();
  for (std::int64_t step = 2; step < 20; ++step) updates.replay(step, step == 7);
  EXPECT_EQ(testing::Streams::global().host_waits(), before);
}

TEST(UpdatesThatAreNotRecorded, SayWhy) {
  const c10::StreamGuard stream(pool_stream());
  const auto why = [](std::unique_ptr<Optimizer> optimizer, at::ScalarType dtype) {
    const Bucket network = testing::small_network(dtype);
    optimizer->attach({{network.values.to(kGraphDevice), network.gradients.to(kGraphDevice), network.segments}});
    return optimizer->why_not_recorded();
  };
  EXPECT_EQ(why(testing::make_optimizer("adam"), at::kFloat), "");
  EXPECT_THAT(why(testing::make_optimizer("adam"), at::kDouble), HasSubstr("float64"));
  EXPECT_THAT(why(testing::make_optimizer("lion"), at::kFloat), HasSubstr("learning rate"));
  EXPECT_THAT(why(testing::make_optimizer("lamb"), at::kFloat), HasSubstr("the host"));
  EXPECT_THAT(why(std::make_unique<Ema>(testing::make_optimizer("adam"), 0.9), at::kFloat),
              HasSubstr("train.ema_decay"));
  for (const char* name : {"lion", "lamb"}) {
    EXPECT_THROW(testing::make_optimizer(name)->record(std::nullopt), std::logic_error) << name;
  }
}

}  // namespace
}  // namespace phalanx
