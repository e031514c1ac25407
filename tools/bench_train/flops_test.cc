// SPDX-License-Identifier: Apache-2.0
#include <ATen/ops/addmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

#include "engine/watch/operation_count.h"
#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {
namespace {

at::Tensor trained(at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(true); }

TEST(FlopCounts, CountsProducts) {
  EXPECT_EQ(2 * 3 * 4 * 5, count_flops([] { at::mm(at::randn({3, 4}), at::randn({4, 5})); }));
  EXPECT_EQ(2 * 3 * 4 * 5, count_flops([] { at::addmm(at::randn({5}), at::randn({3, 4}), at::randn({4, 5})); }));
  EXPECT_EQ(2 * 7 * 3 * 4 * 5, count_flops([] { at::bmm(at::randn({7, 3, 4}), at::randn({7, 4, 5})); }));
  EXPECT_EQ(2 * 3 * 4, count_flops([] { at::matmul(at::randn({3, 4}), at::randn({4})); }));
  EXPECT_EQ(0, count_flops([] { at::relu(at::randn({3, 4})); }));
}

TEST(FlopCounts, CountsTwiceAsManyForTheGradientsOfAProduct) {
  EXPECT_EQ(3 * 2 * 3 * 4 * 5, count_flops([] { at::mm(trained({3, 4}), trained({4, 5})).sum().backward(); }));
  EXPECT_EQ(2 * 2 * 3 * 4 * 5, count_flops([] { at::mm(at::randn({3, 4}), trained({4, 5})).sum().backward(); }));
}

TEST(FlopCounts, CountsConvolutions) {
  // 2 images with 6 input and 8 output channels in 2 groups, 3 x 3 windows at 5 x 4 places: 3 channels x 9
  // multiplications for each of the 8 outputs.
  constexpr double kForward = 2.0 * 2 * 8 * 5 * 4 * 3 * 9;
  const auto convolve = [](const at::Tensor& input) {
    return at::conv2d(input, trained({8, 3, 3, 3}), {}, /*stride=*/2, /*padding=*/1, /*dilation=*/1, /*groups=*/2);
  };
  EXPECT_EQ(kForward, count_flops([&] { convolve(at::randn({2, 6, 9, 8})); }));
  EXPECT_EQ(2 * kForward, count_flops([&] { convolve(at::randn({2, 6, 9, 8})).sum().backward(); }));
  EXPECT_EQ(3 * kForward, count_flops([&] { convolve(trained({2, 6, 9, 8})).sum().backward(); }));
}

TEST(FlopCounts, CountsTransposedConvolutions) {
  // Each of 2 x 6 x 5 x 4 inputs is multiplied with 8 x 3 x 3 weights.
  constexpr double kForward = 2.0 * 2 * 6 * 5 * 4 * 8 * 9;
  const auto convolve = [] { return at::conv_transpose2d(trained({2, 6, 5, 4}), trained({6, 8, 3, 3}), {}, 2); };
  EXPECT_EQ(kForward, count_flops([&] { convolve(); }));
  EXPECT_EQ(3 * kForward, count_flops([&] { convolve().sum().backward(); }));
}

TEST(FlopCounts, CountsTheProductsOfFusedAttention) {
  // Scores and weighted sums of 2 x 3 heads: 16 x 16 x 8 multiplications each; the gradient has four products.
  constexpr double kProduct = 2.0 * 2 * 3 * 16 * 16 * 8;
  const auto attend = [](bool causal) {
    return at::scaled_dot_product_attention(trained({2, 3, 16, 8}), trained({2, 3, 16, 8}), trained({2, 3, 16, 8}), {},
                                            0.0, causal);
  };
  EXPECT_EQ(2 * kProduct, count_flops([&] { attend(false); }));
  EXPECT_EQ(6 * kProduct, count_flops([&] { attend(true).sum().backward(); }));
}

TEST(FlopCounts, CountsTheGatesOfAnLstm) {
  // 5 steps of 2 sequences: four gates of 8 units, each with 6 inputs and 8 states.
  constexpr double kForward = 2.0 * 5 * 2 * 4 * 8 * (6 + 8);
  const auto run = [] {
    const at::Tensor state = at::zeros({1, 2, 8});
    const std::vector<at::Tensor> weights{trained({32, 6}), trained({32, 8}), trained({32}), trained({32})};
    return std::get<0>(at::lstm(trained({5, 2, 6}), {state, state}, weights, /*has_biases=*/true, /*num_layers=*/1,
                                /*dropout=*/0, /*train=*/true, /*bidirectional=*/false, /*batch_first=*/false));
  };
  EXPECT_EQ(kForward, count_flops([&] { run(); }));
  EXPECT_EQ(3 * kForward, count_flops([&] { run().sum().backward(); }));
}

TEST(FlopCounts, CountsTheProductsOfAStep) {
  const auto of = [](const char* name, std::int64_t rows) {
    const auto& workload = find_workload(name);
    return flops_of_step(workload, workload.sample, rows);
  };
  // One multiplication for each weight and sample: in the forward pass, for the gradients of the weights and, except in
  // the first layer, for the gradients of the inputs.
  EXPECT_EQ(2.0 * 64 * (2 * 784 * 512 + 3 * 512 * 512 + 3 * 512 * 10), of("mlp", 64));
  // conv1 at 28 x 28 places, conv2 at 10 x 10, and three linear layers.
  EXPECT_EQ(2.0 * 64 * (2 * 784 * 6 * 25 + 3 * 100 * 16 * 150 + 3 * (400 * 120 + 120 * 84 + 84 * 10)), of("lenet", 64));
  EXPECT_EQ(2 * *of("gpt", 2), of("gpt", 4));
  EXPECT_EQ(std::nullopt, of("zoo_dcgan", 4)) << "it trains in turns";
}

TEST(FlopCounts, CountsTheSameForExplicitAndFusedAttention) {
  auto workload = find_workload("char_lm");
  const auto explicit_attention = flops_of_step(workload, workload.sample, 2);
  workload.model = workload.own_model;
  EXPECT_EQ(explicit_attention, flops_of_step(workload, workload.sample, 2));
  // 4 layers with 12 x 128 x 128 weights, the head with 65 classes, and two products of attention over 64 keys, for 64
  // tokens.
  EXPECT_EQ(3.0 * 2 * 2 * 64 * (4 * (12 * 128 * 128 + 2 * 64 * 128) + 65 * 128), explicit_attention);
}

TEST(Zoo, EveryModelFitsItsSamples) {
  for (const auto& workload : workloads()) {
    if (!workload.of_zoo) continue;
    SCOPED_TRACE(workload.name);
    const auto operations = flops_of_step(workload, workload.sample, 2);
    if (workload.name == "zoo_dcgan") continue;
    ASSERT_TRUE(operations);
    EXPECT_GT(*operations, 0);
    EXPECT_LT(*operations, 2e10) << "models of the zoo must be small here";
  }
}

}  // namespace
}  // namespace phalanx::bench_train
