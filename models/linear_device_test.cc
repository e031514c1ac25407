// Linear layers on devices, which are pretended.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "framework/parallel/autocast.h"
#include "framework/parallel/deferred_gradients.h"
#include "models/apply_linear.h"

namespace phalanx {
namespace {

const at::Device kDevice(c10::kCUDA, 0);

class LinearOfDevices : public ::testing::TestWithParam<at::ScalarType> {};  // that of autocast

INSTANTIATE_TEST_SUITE_P(Precisions, LinearOfDevices, ::testing::Values(at::kFloat, at::kBFloat16));

TEST_P(LinearOfDevices, MayPutOffTheGradientOfItsWeight) {
  const at::Tensor input = at::randn({6, 5}).to(kDevice).requires_grad_();
  at::Tensor weight = at::randn({4, 5}).to(kDevice).requires_grad_(), output;
  weight.mutable_grad() = at::zeros_like(weight);
  {
    const ExpectDeferral deferral;
    const Autocast autocast(kDevice.type(), GetParam());
    output = apply_linear(input, weight, {});
  }
  EXPECT_EQ(output.scalar_type(), GetParam());
  DeferredGradients later;
  {
    const DeferGradients defer(later);
    output.sum().backward();
  }
  const auto expect_close = [](const at::Tensor& actual, const at::Tensor& expected) {
    EXPECT_TRUE(at::allclose(actual.to(at::kCPU), expected.to(at::kCPU), 2e-2, 1e-1));
  };
  expect_close(input.grad(), weight.detach().sum(0).expand_as(input));
  EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0);
  const at::NoGradGuard no_grad;
  for (const auto& add : later) add();
  expect_close(weight.grad(), input.detach().sum(0).expand_as(weight));
}

}  // namespace
}  // namespace phalanx
