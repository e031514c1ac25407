// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <functional>

#include "framework/parallel/deferred_gradients.h"

namespace phalanx::testing {

/// Expects that backward of output = input weight^T defers the weight's gradient, and nothing else. Input and weight
/// are leaves, and the weight has a gradient of zeros. `expect_close(actual, expected)` compares gradients.
inline void expect_put_off(const at::Tensor& output, const at::Tensor& input, const at::Tensor& weight,
                           const std::function<void(const at::Tensor&, const at::Tensor&)>& expect_close) {
  DeferredGradients later;
  {
    const DeferGradients defer(later);
    output.sum().backward();
  }
  expect_close(input.grad(), weight.detach().sum(0).expand_as(input));
  EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0);
  const at::NoGradGuard no_grad;
  for (const auto& add : later) add();
  expect_close(weight.grad(), input.detach().sum(0).expand_as(weight));
}

}  // namespace phalanx::testing
