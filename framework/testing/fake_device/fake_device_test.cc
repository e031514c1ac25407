// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "framework/testing/fake_device/memory.h"

namespace phalanx::testing {
namespace {

const at::Device kDevice(c10::kCUDA, 0);

at::Tensor network(const at::Tensor& image, const at::Tensor& kernel, const at::Tensor& weight) {
  return at::linear(at::max_pool2d(at::conv2d(image, kernel).relu(), 2).flatten(1), weight).square().sum();
}

TEST(FakeDevice, ComputesForwardAndBackwardLikeTheCpu) {
  // Whole numbers, whose convolution is exact: rounding decides neither about relu nor about the largest element.
  const at::Tensor image = at::randint(-3, 4, {3, 2, 8, 8}, at::kFloat),
                   kernel = at::randint(-3, 4, {4, 2, 3, 3}, at::kFloat),
                   weight = at::randint(-3, 4, {5, 36}, at::kFloat);
  std::vector<at::Tensor> results, gradients;
  for (const at::Device device : {at::Device(at::kCPU), kDevice}) {
    const at::Tensor own_kernel = kernel.clone().to(device).requires_grad_(),
                     own_weight = weight.clone().to(device).requires_grad_();
    const at::Tensor result = network(image.to(device), own_kernel, own_weight);
    EXPECT_EQ(result.device(), device);
    result.backward();
    results.push_back(result.to(at::kCPU));
    gradients.push_back(own_kernel.grad().to(at::kCPU));
  }
  EXPECT_TRUE(at::allclose(results[0], results[1], 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(gradients[0], gradients[1], 1e-4, 1e-5));
}

TEST(FakeDevice, RunsBackwardInAThreadOfTheDeviceLikeAGpu) {
  const at::Tensor x = at::ones({2}, at::device(kDevice)).requires_grad_();
  std::thread::id thread;
  x.register_hook([&](const at::Tensor&) { thread = std::this_thread::get_id(); });
  x.sum().backward();
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST(FakeDevice, RefusesToMixDevices) {
  const at::Tensor here = at::ones({2}), there = at::ones({2}, at::device(kDevice));
  EXPECT_THAT([&] { (void)(here + there); }, ::testing::Throws<c10::Error>());
  EXPECT_NO_THROW((void)(there + at::ones({})));
}

TEST(FakeDevice, MemoryIsUninitializedAndNotReadableByTheCpu) {
  const at::Tensor there = at::empty({2}, at::device(kDevice));
  EXPECT_DEATH(std::printf("%f", *there.data_ptr<float>()), "");
  EXPECT_TRUE(there.isnan().all().item<bool>());
}

TEST(FakeDevice, CountsItsMemory) {
  const at::Device device(c10::kCUDA, 3);
  const auto allocated = [&] { return fake_memory().getDeviceStats(device.index()).allocated_bytes[0]; };
  {
    const at::Tensor large = at::ones({1 << 20}, at::device(device));
    EXPECT_EQ(allocated().current, 4 << 20);
  }
  EXPECT_EQ(allocated().current, 0);
  EXPECT_EQ(allocated().peak, 4 << 20);
}

}  // namespace
}  // namespace phalanx::testing
