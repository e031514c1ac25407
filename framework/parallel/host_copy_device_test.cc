// SPDX-License-Identifier: Apache-2.0
// Tests activations that are kept on the host, on a (fake) device.
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tanh.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/parallel/checkpointed.h"
#include "framework/parallel/host_copy.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx {
namespace {

using testing::Streams;

const at::Device kGpu(c10::kCUDA, 0);
constexpr std::int64_t kLayers = 6, kSamples = 512, kWidth = 32, kActivationBytes = kSamples * kWidth * 4;

std::int64_t allocated() { return testing::fake_memory().getDeviceStats(kGpu.index()).allocated_bytes[0].current; }

class HostCopies : public ::testing::TestWithParam<Streams::Mode> {
 protected:
  HostCopies() { Streams::global().set_mode(GetParam(), 3); }
  ~HostCopies() override { Streams::global().set_mode(Streams::Mode::kEager); }
};

INSTANTIATE_TEST_SUITE_P(InEveryOrder, HostCopies, ::testing::Values(Streams::Mode::kEager, Streams::Mode::kDeferred));

struct Result {
  std::vector<at::Tensor> gradients;     // on the CPU
  std::int64_t bytes_after_forward = 0;  // of activations
};

// Trains two steps of a chain of checkpointed layers, and adds up the gradients.
Result train(bool on_host) {
  at::manual_seed(7);
  std::vector<at::Tensor> weights;
  for (std::int64_t i = 0; i < kLayers; ++i) {
    weights.push_back((at::randn({kWidth, kWidth}) / 4).to(kGpu).requires_grad_());
  }
  Result result;
  for (int step = 0; step < 2; ++step) {
    const at::Tensor input = at::randn({kSamples, kWidth}).to(kGpu).requires_grad_();
    const auto before = allocated();
    at::Tensor x = input * 2;
    std::shared_ptr<HostCopy> last;
    for (const auto& weight : weights) {
      const auto layer = [&](const at::Tensor& in) { return at::tanh(at::linear(in, weight)); };
      x = on_host ? checkpointed_on_host(layer, x, last) : checkpointed(layer, x);
    }
    last.reset();
    result.bytes_after_forward = allocated() - before;
    x.sum().backward();
    result.gradients.push_back(input.grad().to(at::kCPU));
  }
  for (const auto& weight : weights) result.gradients.push_back(weight.grad().to(at::kCPU));
  return result;
}

TEST_P(HostCopies, ChangeNoBitOfTheGradients) {
  const auto kept = train(false).gradients, copied = train(true).gradients;
  ASSERT_EQ(copied.size(), kept.size());
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(at::equal(copied[i], kept[i])) << i;
}

TEST_P(HostCopies, RefuseAnInputThatIsChangedInPlace) {
  const at::Tensor weight = at::ones({4}).to(kGpu).requires_grad_();
  const auto change = [](const at::Tensor& input) { return at::Tensor(input).mul_(2); };
  std::shared_ptr<HostCopy> last;
  EXPECT_THROW(checkpointed_on_host(change, weight * 3, last), std::logic_error);
}

// The input of the last layer, and its output.
TEST(HostCopyMemory, HoldsOneActivationOnTheDeviceAfterForward) {
  EXPECT_GE(train(false).bytes_after_forward, (kLayers + 1) * kActivationBytes);
  EXPECT_LT(train(true).bytes_after_forward, 3 * kActivationBytes);
}

TEST(HostCopyMemory, MakesTheHostWaitForNothing) {
  const at::Tensor tensor = at::ones({kSamples, kWidth}, at::device(kGpu));
  const auto waits = Streams::global().host_waits();
  const auto first = std::make_shared<HostCopy>(tensor, nullptr);
  const auto second = std::make_shared<HostCopy>(tensor * 2, first);
  const at::Tensor last = second->restore(), before = first->restore();
  EXPECT_EQ(Streams::global().host_waits(), waits);
  EXPECT_TRUE(at::equal((before * 2).to(at::kCPU), last.to(at::kCPU)));
}

TEST_P(HostCopies, KeepStridesAndMayBeRestoredTwice) {
  const at::Tensor values = at::arange(24, at::kFloat).view({4, 6});
  const auto first = std::make_shared<HostCopy>(values.to(kGpu).t(), nullptr);
  const auto second = std::make_shared<HostCopy>(at::ones({3}, at::device(kGpu)), first);
  for (int i = 0; i < 2; ++i) {
    const at::Tensor last = second->restore(), tensor = first->restore();
    EXPECT_TRUE(at::equal(last.to(at::kCPU), at::ones({3})));
    EXPECT_EQ(tensor.strides(), values.t().strides());
    EXPECT_TRUE(at::equal(tensor.to(at::kCPU), values.t()));
  }
}

// As after an error in the middle of a step: without a wait for the copies.
TEST_P(HostCopies, MayBeDestroyedAtAnyTime) {
  for (const bool restores : {false, true}) {
    auto first = std::make_shared<HostCopy>(at::full({kSamples}, 1, at::device(kGpu)), nullptr);
    auto second = std::make_shared<HostCopy>(at::full({kSamples}, 2, at::device(kGpu)), first);
    if (restores) (void)second->restore();
    first.reset();
    second.reset();
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(at::full({kSamples}, 3, at::device(kGpu)).sum().item<float>(), 3 * kSamples);
    }
  }
}

}  // namespace
}  // namespace phalanx
