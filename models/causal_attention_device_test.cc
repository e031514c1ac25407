// SPDX-License-Identifier: Apache-2.0
// Tests attention with shared heads on a (fake) device.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "models/causal_attention.h"

namespace phalanx {
namespace {

const at::Device kGpu(c10::kCUDA, 0);

at::Tensor values(int which, std::int64_t heads) {
  const auto count = 2 * heads * 12 * 8;
  return (at::arange(count, at::kDouble) * (0.61 + 0.17 * which)).sin().view({2, heads, 12, 8});
}

std::int64_t heads_of_kernel = 0;  // of the keys that LibTorch's function gets

std::unique_ptr<at::ObserverContext> note_heads(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "aten::scaled_dot_product_attention") {
    heads_of_kernel = function.inputs()[1].toTensor().size(1);
  }
  return nullptr;
}

// Returns output and gradients on the CPU in float64.
std::vector<at::Tensor> attend(const at::Device& device, at::ScalarType dtype) {
  std::vector<at::Tensor> inputs;
  for (int i = 0; i < 3; ++i) {
    inputs.push_back(values(i, i == 0 ? 6 : 2).to(at::kBFloat16).to(dtype).to(device).requires_grad_());
  }
  const CausalAttention attention(/*fused=*/true, /*layer=*/0);
  const at::Tensor output = attention.forward(inputs[0], inputs[1], inputs[2]);
  std::vector<at::Tensor> all = torch::autograd::grad({output}, inputs, {values(3, 6).to(dtype).to(device)});
  all.push_back(output);
  for (auto& one : all) one = one.detach().to(at::kCPU).to(at::kDouble);
  return all;
}

class SharedHeads : public ::testing::Test {
 protected:
  SharedHeads() : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(note_heads).needsInputs(true))) {}
  ~SharedHeads() override { at::removeCallback(handle_); }

  static void expect_as_on_cpu(at::ScalarType dtype, double tolerance) {
    const auto expected = attend(at::kCPU, at::kDouble);
    EXPECT_EQ(heads_of_kernel, 6) << "the CPU gets a copy for each query";
    const auto got = attend(kGpu, dtype);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].sizes(), expected[i].sizes());
      EXPECT_LT((got[i] - expected[i]).abs().max().item<double>(), tolerance) << dtype << ' ' << i;
    }
  }

 private:
  at::CallbackHandle handle_;
};

TEST_F(SharedHeads, AreReadInPlaceByFlashAttention) {
  expect_as_on_cpu(at::kBFloat16, 0.1);
  EXPECT_EQ(heads_of_kernel, 2);
}

// LibTorch would compute products of whole matrices otherwise.
TEST_F(SharedHeads, AreCopiedForOtherKernels) {
  expect_as_on_cpu(at::kFloat, 1e-4);
  EXPECT_EQ(heads_of_kernel, 6);
}

}  // namespace
}  // namespace phalanx
