// SPDX-License-Identifier: Apache-2.0
// Operators of backward passes that LibTorch runs in threads of (fake) devices.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/observe/trace/chrome_trace.h"
#include "framework/observe/trace/operator_trace.h"

namespace phalanx {
namespace {

TEST(OperatorTraceOfDevices, HasTheOperatorsOfBackward) {
  const at::Tensor x = at::ones({10}, at::device(at::Device(c10::kCUDA, 0))).requires_grad_();
  const at::Tensor y = x.sin().sum();
  OperatorTrace trace;
  y.backward();
  EXPECT_THAT(trace.take(), ::testing::Contains(::testing::Field(&TraceEvent::name, "aten::cos")));
}

}  // namespace
}  // namespace phalanx
