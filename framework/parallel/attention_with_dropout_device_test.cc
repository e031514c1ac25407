// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <vector>

#include "framework/base/device_memory.h"
#include "framework/parallel/attention_with_dropout.h"
#include "framework/testing/fake_device/memory.h"
#include "framework/testing/fake_device/streams.h"

namespace phalanx {
namespace {

const at::Device kAttentionDevice(c10::kCUDA, 0);  // fake
const DropoutNumbers kDeviceDropout{.rate = 0.3, .layer = 11, .key = {.step = 5, .first_row = 20}};

std::vector<at::Tensor> inputs_of(std::int64_t length, c10::ScalarType dtype) {
  std::vector<at::Tensor> inputs;
  for (int which = 0; which < 4; ++which) {  // query, key, value, gradient
    const at::Tensor angles = at::arange(2 * 3 * length * 8, at::kDouble) * (0.61 + 0.17 * which);
    inputs.push_back(angles.sin().view({2, 3, length, 8}).to(dtype));
  }
  return inputs;
}

// Returns output and gradients.
std::vector<at::Tensor> attend_on(const at::Device& device, const std::vector<at::Tensor>& inputs,
                                  const AttentionPattern& pattern, std::int64_t block_bytes) {
  std::vector<at::Tensor> leaves;
  for (std::size_t i = 0; i < 3; ++i) leaves.push_back(inputs[i].to(device).detach().requires_grad_());
  const at::Tensor output = attention_in_blocks(leaves[0], leaves[1], leaves[2], pattern, kDeviceDropout, block_bytes);
  std::vector<at::Tensor> all = torch::autograd::grad({output}, leaves, {inputs[3].to(device)});
  all.push_back(output);
  return all;
}

TEST(AttentionInBlocksOnDevices, IsThatOfTheCpu) {
  const at::Tensor keys = at::ones({2, 9}, at::kBool);
  keys[1].narrow(0, 5, 4).fill_(false);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const auto inputs = inputs_of(9, dtype);
    const double tolerance = dtype == at::kBFloat16 || dtype == at::kHalf ? 2e-2 : 1e-5;
    for (const std::int64_t block_bytes : {1, 300, 1 << 20}) {
      const auto expected = attend_on(c10::kCPU, inputs, {.keys = keys, .causal = true}, block_bytes);
      const auto got =
          attend_on(kAttentionDevice, inputs, {.keys = keys.to(kAttentionDevice), .causal = true}, block_bytes);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double difference = (got[i].to(at::kCPU) - expected[i]).abs().max().item<double>();
        EXPECT_LT(difference, tolerance) << dtype << ", " << block_bytes << " bytes, tensor " << i;
      }
    }
  }
}

// The weights would have 6 MiB, in blocks of 64 KiB.
TEST(AttentionInBlocksOnDevices, NeverHasAllWeightsAndDoesNotWait) {
  constexpr std::int64_t kBlock = std::int64_t{64} << 10, kLength = 512;
  const auto inputs = inputs_of(kLength, at::kFloat);
  std::vector<at::Tensor> leaves;
  for (const auto& input : inputs) leaves.push_back(input.to(kAttentionDevice).requires_grad_());
  const std::int64_t input = leaves[0].numel() * 4;
  testing::fake_memory().resetPeakStats(0);
  const auto before = peak_bytes(kAttentionDevice), waits = testing::Streams::global().host_waits();
  const at::Tensor output = attention_in_blocks(leaves[0], leaves[1], leaves[2], {}, kDeviceDropout, kBlock);
  (void)torch::autograd::grad({output}, {leaves[0], leaves[1], leaves[2]}, {leaves[3].detach()});
  EXPECT_EQ(testing::Streams::global().host_waits(), waits);
  EXPECT_GT(peak_bytes(kAttentionDevice) - before, kBlock) << "not counted";
  // The allocator of the fake device rounds up to powers of two.
  EXPECT_LT(peak_bytes(kAttentionDevice) - before, 2 * (12 * kBlock + 10 * input));
  EXPECT_LT(2 * (12 * kBlock + 10 * input), 3 * kLength * kLength * 4 * 2) << "less than the weights";
}

}  // namespace
}  // namespace phalanx
