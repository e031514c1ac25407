// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "framework/parallel/chunked_cross_entropy.h"
#include "framework/parallel/padded_columns.h"

namespace phalanx {
namespace {

constexpr std::int64_t kRows = 11, kClasses = 23, kStride = 64, kIgnored = -100;
const at::Device kLossDevice(c10::kCUDA, 0);  // fake

class ChunkedCrossEntropyOfDevices : public ::testing::TestWithParam<at::ScalarType> {};  // parameter: dtype of logits

INSTANTIATE_TEST_SUITE_P(Precisions, ChunkedCrossEntropyOfDevices,
                         ::testing::Values(at::kFloat, at::kBFloat16, at::kHalf, at::kDouble));

TEST_P(ChunkedCrossEntropyOfDevices, EqualsThePlainOneForAllChunks) {
  const at::Tensor values = at::randn({kRows, kClasses}).mul_(3).to(GetParam());
  const at::Tensor target = at::randint(kClasses, {kRows}, at::kLong);
  target[2].fill_(kIgnored);
  target[kRows - 1].fill_(kIgnored);
  const double tolerance = GetParam() == at::kBFloat16 ? 1e-2 : GetParam() == at::kHalf ? 1e-3 : 1e-5;
  for (const double smoothing : {0.0, 0.1}) {
    const at::Tensor plain = values.detach().clone().requires_grad_();
    const at::Tensor expected = at::cross_entropy_loss(GetParam() == at::kDouble ? plain : plain.to(at::kFloat), target,
                                                       {}, at::Reduction::Mean, kIgnored, smoothing);
    const at::Tensor expected_gradient = torch::autograd::grad({expected * 3}, {plain})[0];
    for (const std::int64_t chunk : {1, 70, 10000}) {
      at::Tensor logits = empty_padded(kRows, kClasses, kStride, at::device(kLossDevice).dtype(GetParam()));
      logits.copy_(values);
      logits.requires_grad_();
      const at::Tensor loss = chunked_cross_entropy(logits, target.to(kLossDevice), kIgnored, smoothing, chunk);
      const at::Tensor gradient = torch::autograd::grad({loss * 3}, {logits})[0];
      EXPECT_TRUE(at::allclose(loss.to(at::kCPU), expected, 1e-5, 1e-5)) << smoothing << ' ' << chunk;
      EXPECT_EQ(gradient.scalar_type(), GetParam());
      EXPECT_TRUE(at::allclose(gradient.to(at::kCPU), expected_gradient, tolerance, 1e-5)) << smoothing << ' ' << chunk;
      const at::Tensor whole = with_padding(gradient, kStride);
      EXPECT_EQ(whole.data_ptr(), gradient.data_ptr()) << "copied";
      EXPECT_EQ(whole.narrow(1, kClasses, kStride - kClasses).abs().sum().item<double>(), 0);
    }
  }
}

}  // namespace
}  // namespace phalanx
