// SPDX-License-Identifier: Apache-2.0
// Tests linear layers on simulated devices.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "framework/parallel/autocast.h"
#include "framework/parallel/deferred_gradients.h"
#include "models/apply_linear.h"
#include "models/testing/deferral.h"

namespace phalanx {
namespace {

const at::Device kDevice(c10::kCUDA, 0);

class LinearOfDevices : public ::testing::TestWithParam<at::ScalarType> {};  // parameter: dtype of autocast

INSTANTIATE_TEST_SUITE_P(Precisions, LinearOfDevices, ::testing::Values(at::kFloat, at::kBFloat16));

TEST_P(LinearOfDevices, CanDeferTheGradientOfItsWeight) {
  const at::Tensor input = at::randn({6, 5}).to(kDevice).requires_grad_();
  at::Tensor weight = at::randn({4, 5}).to(kDevice).requires_grad_(), output;
  weight.mutable_grad() = at::zeros_like(weight);
  {
    const ExpectDeferral deferral;
    const Autocast autocast(kDevice.type(), GetParam());
    output = apply_linear(input, weight, {});
  }
  EXPECT_EQ(output.scalar_type(), GetParam());
  testing::expect_put_off(output, input, weight, [](const at::Tensor& actual, const at::Tensor& expected) {
    EXPECT_TRUE(at::allclose(actual.to(at::kCPU), expected.to(at::kCPU), 2e-2, 1e-1));
  });
}

}  // namespace
}  // namespace phalanx
