// SPDX-License-Identifier: Apache-2.0
// Gradients that are deferred by backward passes that LibTorch runs in threads of devices. The devices are fake.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <thread>

#include "framework/parallel/deferred_gradients.h"

namespace phalanx {
namespace {

// Runs a backward pass that may defer `compute`.
void backward(const std::function<void()>& compute) {
  const at::Tensor x = at::ones({2}, at::device(at::Device(c10::kCUDA, 0))).requires_grad_();
  x.register_hook([&](const at::Tensor&) { DeferGradients::now_or_later(compute); });
  x.sum().backward();
}

TEST(DeferredGradientsOfDevices, AreDeferred) {
  bool computed = false;
  DeferredGradients later;
  {
    const DeferGradients defer(later);
    backward([&] { computed = true; });
  }
  EXPECT_FALSE(computed);
  ASSERT_EQ(later.size(), 1u);
  later[0]();
  EXPECT_TRUE(computed);
}

TEST(DeferredGradientsOfDevices, AreComputedAtOnceUnlessDeferred) {
  bool computed = false;
  const ExpectDeferral expected;
  backward([&] { computed = true; });
  EXPECT_TRUE(computed);
}

// Ranks may be threads, and several ranks may use one device.
TEST(DeferredGradientsOfDevices, BelongToTheThreadThatDeferredThem) {
  constexpr std::size_t kTimes = 20;
  const auto put_off = [] {
    std::size_t all = 0;
    for (std::size_t i = 0; i < kTimes; ++i) {
      DeferredGradients later;
      const DeferGradients defer(later);
      backward([] {});
      all += later.size();
    }
    return all;
  };
  std::size_t elsewhere = 0;
  std::thread thread([&] { elsewhere = put_off(); });
  EXPECT_EQ(put_off(), kTimes);
  thread.join();
  EXPECT_EQ(elsewhere, kTimes);
}

}  // namespace
}  // namespace phalanx
