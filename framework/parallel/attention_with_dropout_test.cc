// SPDX-License-Identifier: Apache-2.0
// Compares attention in blocks with the formula, which materializes all weights and leaves the gradients to autograd.
#include "framework/parallel/attention_with_dropout.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "framework/parallel/autocast.h"
#include "framework/testing/counting_allocator.h"

namespace phalanx {
namespace {

struct DropoutShape {
  static constexpr std::int64_t kSamples = 3, kHeads = 4, kQueries = 10, kKeys = 7, kWidth = 8;
};
constexpr std::int64_t kWholeAttention = std::int64_t{1} << 40;  // bytes: all weights in one block
const DropoutNumbers kDropoutNumbers{.rate = 0.3, .layer = 11, .key = {.step = 5, .first_row = 20}};

struct AttentionLeaves {
  at::Tensor query, key, value;
  std::vector<at::Tensor> all() const { return {query, key, value}; }
};

at::Tensor attention_wave(int which, at::IntArrayRef sizes) {
  return ((at::arange(c10::multiply_integers(sizes), at::kDouble) * (0.61 + 0.17 * which)).sin() * 1.5).view(sizes);
}

AttentionLeaves attention_waves(c10::ScalarType dtype = at::kDouble, std::int64_t keys = DropoutShape::kKeys) {
  const auto leaf = [&](int which, std::int64_t positions) {
    return attention_wave(which, {DropoutShape::kSamples, DropoutShape::kHeads, positions, DropoutShape::kWidth})
        .to(dtype)
        .requires_grad_();
  };
  return {leaf(0, DropoutShape::kQueries), leaf(1, keys), leaf(2, keys)};
}

at::Tensor attention_formula(const AttentionLeaves& of, const AttentionPattern& pattern,
                             const DropoutNumbers& numbers) {
  at::Tensor scores = at::matmul(of.query, of.key.transpose(2, 3)) / std::sqrt(static_cast<double>(of.query.size(3)));
  const auto exclude = [&](const at::Tensor& keys) {
    scores = scores.masked_fill(keys, -std::numeric_limits<double>::infinity());
  };
  if (pattern.keys.defined()) exclude(pattern.keys.logical_not().unsqueeze(1).unsqueeze(1));
  if (pattern.causal) exclude(at::ones({of.query.size(2), of.key.size(2)}, at::kBool).triu(1));
  return at::matmul(scores.softmax(-1) * dropout_factors(scores, numbers.rate, numbers.layer, numbers.key), of.value);
}

double farthest(const at::Tensor& got, const at::Tensor& expected) {
  return (got.to(at::kDouble) - expected).abs().max().item<double>();
}

// Checks output and gradients of `dtype`. Expected values are float64, computed from inputs rounded to `dtype`.
void check_blocks(c10::ScalarType dtype, const AttentionPattern& pattern, std::int64_t block_bytes, double tolerance) {
  const AttentionLeaves here = attention_waves(dtype);
  const auto in_double = [](const at::Tensor& x) { return x.detach().to(at::kDouble).requires_grad_(); };
  const AttentionLeaves exact{in_double(here.query), in_double(here.key), in_double(here.value)};
  const at::Tensor upstream = attention_wave(3, here.query.sizes()).to(dtype);
  const at::Tensor expected = attention_formula(exact, pattern, kDropoutNumbers);
  const auto wanted = torch::autograd::grad({expected}, exact.all(), {upstream.to(at::kDouble)});
  const at::Tensor output =
      attention_in_blocks(here.query, here.key, here.value, pattern, kDropoutNumbers, block_bytes);
  EXPECT_EQ(output.scalar_type(), dtype);
  EXPECT_LT(farthest(output, expected), tolerance) << block_bytes;
  const auto got = torch::autograd::grad({output}, here.all(), {upstream});
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].scalar_type(), dtype);
    EXPECT_LT(farthest(got[i], wanted[i]), 4 * tolerance) << "gradient " << i << ", " << block_bytes;
  }
}

// Bytes of blocks of one query, of some queries of a sample, of one and of two samples, and of all.
std::vector<std::int64_t> sizes_of_blocks() {
  constexpr std::int64_t kQuery = DropoutShape::kHeads * DropoutShape::kKeys * 8;
  return {1, 3 * kQuery, DropoutShape::kQueries * kQuery, 2 * DropoutShape::kQueries * kQuery, kWholeAttention};
}

// Returns masks that hide some keys of each sample.
at::Tensor some_keys() {
  const at::Tensor keys = at::ones({DropoutShape::kSamples, DropoutShape::kKeys}, at::kBool);
  keys[0].narrow(0, 4, 3).fill_(false);
  keys[2].narrow(0, 1, 1).fill_(false);
  return keys;
}

TEST(AttentionInBlocks, IsTheFormulaWhateverTheBlocks) {
  for (const auto block_bytes : sizes_of_blocks()) {
    check_blocks(at::kDouble, {}, block_bytes, 1e-13);
    check_blocks(at::kFloat, {}, block_bytes, 1e-5);
    check_blocks(at::kBFloat16, {}, block_bytes, 5e-2);
    check_blocks(at::kHalf, {}, block_bytes, 5e-3);
  }
}

TEST(AttentionInBlocks, TakesMasks) {
  for (const auto block_bytes : sizes_of_blocks()) {
    check_blocks(at::kDouble, {.causal = true}, block_bytes, 1e-13);
    check_blocks(at::kDouble, {.keys = some_keys()}, block_bytes, 1e-13);
    check_blocks(at::kDouble, {.keys = some_keys(), .causal = true}, block_bytes, 1e-13);
  }
}

TEST(AttentionInBlocks, OfSomeHeadsDropsWhatTheWholeLayerDrops) {
  const AttentionLeaves whole = attention_waves();
  const at::Tensor expected = attention_formula(whole, {}, kDropoutNumbers).narrow(1, 2, 2);
  DropoutNumbers numbers = kDropoutNumbers;
  numbers.first_group = 2;
  const auto half = [](const at::Tensor& x) { return x.narrow(1, 2, 2); };
  for (const auto block_bytes : sizes_of_blocks()) {
    const at::Tensor got =
        attention_in_blocks(half(whole.query), half(whole.key), half(whole.value), {}, numbers, block_bytes);
    EXPECT_LT(farthest(got, expected), 1e-13) << block_bytes;
  }
}

// As in a layer, the inputs are views of one projection, and the heads of a position are joined afterwards.
TEST(AttentionInBlocks, TakesViewsAndKeepsTheirOrder) {
  const at::Tensor projection = attention_wave(0, {DropoutShape::kSamples, DropoutShape::kQueries,
                                                   3 * DropoutShape::kHeads * DropoutShape::kWidth})
                                    .requires_grad_();
  const auto output_of = [&](bool in_blocks) {
    std::vector<at::Tensor> parts;
    for (const auto& part : projection.chunk(3, 2)) {
      parts.push_back(
          part.view({DropoutShape::kSamples, DropoutShape::kQueries, DropoutShape::kHeads, DropoutShape::kWidth})
              .transpose(1, 2));
    }
    return in_blocks ? attention_in_blocks(parts[0], parts[1], parts[2], {}, kDropoutNumbers, 1)
                     : attention_formula({parts[0], parts[1], parts[2]}, {}, kDropoutNumbers);
  };
  const at::Tensor output = output_of(true), expected = output_of(false);
  EXPECT_TRUE(output.transpose(1, 2).is_contiguous());
  EXPECT_LT(farthest(output, expected), 1e-13);
  const at::Tensor gradient = torch::autograd::grad({output.sum()}, {projection})[0];
  EXPECT_LT(farthest(gradient, torch::autograd::grad({expected.sum()}, {projection})[0]), 1e-12);
}

TEST(AttentionInBlocks, ComputesInTheDtypeOfAnAutocast) {
  const AttentionLeaves inputs = attention_waves(at::kFloat);
  at::Tensor output;
  {
    const Autocast autocast(c10::kCPU, at::kBFloat16);
    output = attention_in_blocks(inputs.query, inputs.key, inputs.value, {}, kDropoutNumbers);
  }
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  EXPECT_LT(farthest(output, attention_formula(inputs, {}, kDropoutNumbers).to(at::kDouble)), 5e-2);
  EXPECT_EQ(torch::autograd::grad({output.sum()}, {inputs.key})[0].scalar_type(), at::kFloat);
}

// All weights have 8 MiB, and the formula needs several tensors of that size at a time. The blocks have 256 KiB.
TEST(AttentionInBlocks, NeverHasAllWeights) {
  testing::CpuBytes::count();
  constexpr std::int64_t kBlock = std::int64_t{256} << 10, kLength = 512;
  const auto leaf = [] { return at::randn({2, 4, kLength, DropoutShape::kWidth}).requires_grad_(); };
  const AttentionLeaves inputs{leaf(), leaf(), leaf()};
  const std::int64_t input = inputs.query.numel() * 4;
  const std::int64_t before = testing::CpuBytes::live();
  testing::CpuBytes::begin_peak();
  const at::Tensor output = attention_in_blocks(inputs.query, inputs.key, inputs.value, {}, kDropoutNumbers, kBlock);
  EXPECT_GT(testing::CpuBytes::peak() - before, kBlock) << "not counted";
  EXPECT_LT(testing::CpuBytes::live() - before, 2 * input) << "nothing but the output is kept";
  (void)torch::autograd::grad({output.sum()}, inputs.all());
  EXPECT_LT(testing::CpuBytes::peak() - before, 6 * kBlock + 10 * input);
  testing::CpuBytes::begin_peak();
  const std::int64_t between = testing::CpuBytes::live();
  (void)torch::autograd::grad({attention_formula(inputs, {}, kDropoutNumbers).sum()}, inputs.all());
  EXPECT_GT(testing::CpuBytes::peak() - between, 3 * (std::int64_t{8} << 20)) << "what it is compared with";
}

TEST(AttentionAtOnce, IsTheFormulaWithMasks) {
  const AttentionLeaves inputs = attention_waves();
  for (const AttentionPattern& pattern : {AttentionPattern{}, AttentionPattern{.keys = some_keys(), .causal = true}}) {
    const at::Tensor got = attention_at_once(inputs.query, inputs.key, inputs.value, pattern, kDropoutNumbers);
    EXPECT_LT(farthest(got, attention_formula(inputs, pattern, kDropoutNumbers)), 1e-13);
  }
}

// The weights have fewer bytes than the limit, and just as many.
TEST(AttentionWithDropout, IsTheSameAtOnceAsInBlocks) {
  for (const std::int64_t length : {256, 512}) {
    const auto input = [&](int which) { return attention_wave(which, {1, 8, length, 4}).to(at::kFloat); };
    const at::Tensor query = input(0), key = input(1), value = input(2);
    const AttentionPattern pattern{.causal = true};
    const at::Tensor at_once = attention_at_once(query, key, value, pattern, kDropoutNumbers),
                     in_blocks = attention_in_blocks(query, key, value, pattern, kDropoutNumbers),
                     chosen = attention_with_dropout(query, key, value, pattern, kDropoutNumbers);
    EXPECT_LT(farthest(at_once, in_blocks), 1e-5);
    EXPECT_TRUE(at::equal(chosen, 8 * length * length * 4 < kAttentionAtOnceBytes ? at_once : in_blocks)) << length;
  }
}

TEST(AttentionInBlocks, TakesNoSamples) {
  const at::Tensor none =
      at::zeros({0, DropoutShape::kHeads, DropoutShape::kQueries, DropoutShape::kWidth}).requires_grad_();
  const at::Tensor output = attention_in_blocks(none, none, none, {}, kDropoutNumbers);
  EXPECT_EQ(output.sizes(), none.sizes());
  EXPECT_EQ(torch::autograd::grad({output.sum()}, {none})[0].sizes(), none.sizes());
}

TEST(AttentionInBlocks, RefusesShapesThatDoNotFitAndSecondDerivatives) {
  const AttentionLeaves inputs = attention_waves();
  const at::Tensor flat = inputs.query.flatten(0, 1), narrow = inputs.key.narrow(3, 0, 4);
  EXPECT_THROW(attention_in_blocks(flat, flat, flat, {}, kDropoutNumbers), std::invalid_argument);
  EXPECT_THROW(attention_in_blocks(inputs.query, narrow, narrow, {}, kDropoutNumbers), std::invalid_argument);
  EXPECT_THROW(attention_in_blocks(inputs.query, inputs.key, narrow, {}, kDropoutNumbers), std::invalid_argument);
  EXPECT_THROW(attention_with_dropout(inputs.query, narrow, narrow, {}, kDropoutNumbers), std::invalid_argument);
  const at::Tensor output = attention_in_blocks(inputs.query, inputs.key, inputs.value, {}, kDropoutNumbers);
  EXPECT_THROW(torch::autograd::grad({output.sum()}, {inputs.query}, {}, {}, /*create_graph=*/true), c10::Error);
}

}  // namespace
}  // namespace phalanx
