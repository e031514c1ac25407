// SPDX-License-Identifier: Apache-2.0
// Compares ring attention with the attention of one process that has the whole sequence.
#include "framework/parallel/ring_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "framework/partition/sequence_shard.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

constexpr std::int64_t kSamples = 2, kHeads = 3, kWidth = 8;

// The scores differ so much that a key too many or too few is far beyond rounding.
at::Tensor tensor_of(int which, std::int64_t length, c10::ScalarType dtype, std::int64_t heads = kHeads) {
  const auto count = kSamples * heads * length * kWidth;
  return ((at::arange(count, at::kDouble) * (0.61 + 0.17 * which)).sin() * 1.5)
      .view({kSamples, heads, length, kWidth})
      .to(dtype);
}

at::Tensor plain_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  const auto length = query.size(2);
  const at::Tensor later = at::ones({length, length}, at::kBool).triu(1);
  const at::Tensor scores = (at::matmul(query, key.transpose(2, 3)) / std::sqrt(static_cast<double>(kWidth)))
                                .masked_fill(later, -std::numeric_limits<double>::infinity());
  return at::matmul(scores.softmax(-1), value);
}

double distance(const at::Tensor& got, const at::Tensor& expected) {
  return (got.to(at::kDouble) - expected).abs().max().item<double>();
}

// Checks output and gradients of one rank's positions. Expected values are float64, computed from inputs rounded to
// `dtype`.
void check(int ranks, std::int64_t length, c10::ScalarType dtype, double tolerance) {
  run_ranks("inproc", ranks, [&](const CommunicatorPtr& world) {
    std::vector<at::Tensor> whole, part;
    for (int i = 0; i < 3; ++i) {
      whole.push_back(tensor_of(i, length, dtype).to(at::kDouble).requires_grad_());
      part.push_back(shard_sequence(tensor_of(i, length, dtype), 2, *world).requires_grad_());
    }
    const at::Tensor upstream = tensor_of(3, length, dtype);
    const at::Tensor expected = plain_attention(whole[0], whole[1], whole[2]);
    const auto wanted = torch::autograd::grad({expected}, {whole[0], whole[1], whole[2]}, {upstream.to(at::kDouble)});

    const at::Tensor output = ring_attention(part[0], part[1], part[2], world);
    const auto got =
        torch::autograd::grad({output}, {part[0], part[1], part[2]}, {shard_sequence(upstream, 2, *world)});
    EXPECT_EQ(output.scalar_type(), dtype);
    EXPECT_LT(distance(output, shard_sequence(expected, 2, *world)), tolerance);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].scalar_type(), dtype);
      EXPECT_LT(distance(got[i], shard_sequence(wanted[i], 2, *world)), 4 * tolerance) << "gradient " << i;
    }
  });
}

TEST(RingAttention, MatchesAttentionInOneProcess) {
  for (const int ranks : {1, 2, 3, 4}) {
    check(ranks, 24, at::kDouble, 1e-12);
    check(ranks, 24, at::kFloat, 1e-5);
    check(ranks, 24, at::kBFloat16, 5e-2);
  }
}

// Three query heads share one head of keys and values, which is what travels.
TEST(RingAttention, TakesHeadsThatQueriesShare) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const at::Tensor query = tensor_of(0, 24, at::kDouble).requires_grad_(),
                     key = tensor_of(1, 24, at::kDouble, 1).requires_grad_(),
                     value = tensor_of(2, 24, at::kDouble, 1).requires_grad_(),
                     upstream = tensor_of(3, 24, at::kDouble);
    const at::Tensor expected = plain_attention(query, key, value);
    const auto wanted = torch::autograd::grad({expected}, {query, key, value}, {upstream});
    std::vector<at::Tensor> part;
    for (const auto& whole : {query, key, value})
      part.push_back(shard_sequence(whole.detach(), 2, *world).requires_grad_());
    const at::Tensor output = ring_attention(part[0], part[1], part[2], world);
    const auto got = torch::autograd::grad({output}, part, {shard_sequence(upstream, 2, *world)});
    EXPECT_LT(distance(output, shard_sequence(expected, 2, *world)), 1e-12);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].sizes(), part[i].sizes());
      EXPECT_LT(distance(got[i], shard_sequence(wanted[i], 2, *world)), 4e-12) << "gradient " << i;
    }
  });
}

TEST(RingAttention, TakesLongSequencesAndChunksOfOne) {
  check(4, 8, at::kDouble, 1e-12);
  check(2, 1200, at::kDouble, 1e-11);  // more positions than the kernel computes at once
}

// The inputs are views of one projection, as in a layer, and the gradient is one number at all positions.
TEST(RingAttention, TakesViews) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const at::Tensor rows = shard_sequence(tensor_of(0, 16, at::kDouble).transpose(1, 2), 1, *world);
    const at::Tensor view = rows.contiguous().transpose(1, 2).requires_grad_();
    const at::Tensor dense = view.detach().contiguous().requires_grad_();
    ring_attention(view, view, view, world).sum().backward();
    ring_attention(dense, dense, dense, world).sum().backward();
    EXPECT_EQ(distance(view.grad(), dense.grad()), 0);
  });
}

// The last position of rank 0 is the last one of the whole sequence.
TEST(SequenceShard, RanksHaveAnEarlyAndALateChunk) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& world) {
    const at::Tensor part = shard_sequence(at::arange(12, at::kLong).view({1, 12}), 1, *world);
    const std::vector<std::vector<std::int64_t>> expected{{0, 1, 10, 11}, {2, 3, 8, 9}, {4, 5, 6, 7}};
    const auto* const got = part.const_data_ptr<std::int64_t>();
    EXPECT_EQ(std::vector<std::int64_t>(got, got + part.numel()), expected[static_cast<std::size_t>(world->rank())]);
    EXPECT_TRUE(can_shard_sequence(12, *world));
    EXPECT_FALSE(can_shard_sequence(9, *world));
    EXPECT_THROW(shard_sequence(at::zeros({9}), 0, *world), std::invalid_argument);
  });
}

TEST(RingAttention, RefusesOddNumbersOfPositionsAndHeadsThatCannotBeShared) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& world) {
    const at::Tensor odd = at::zeros({1, 1, 3, 4}), even = at::zeros({1, 1, 4, 4});
    EXPECT_THROW(ring_attention(odd, odd, odd, world), std::invalid_argument);
    EXPECT_THROW(ring_attention(even, odd, odd, world), std::invalid_argument);
    const at::Tensor three = at::zeros({1, 3, 4, 4}), two = at::zeros({1, 2, 4, 4});
    EXPECT_THROW(ring_attention(three, two, two, world), std::invalid_argument);
    const at::Tensor none = at::zeros({1, 0, 4, 4});
    EXPECT_THROW(ring_attention(three, none, none, world), std::invalid_argument);
  });
}

}  // namespace
}  // namespace phalanx
