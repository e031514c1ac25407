// SPDX-License-Identifier: Apache-2.0
// Dropout of attention weights in a layer: few weights are computed at once, many in blocks.
#include "models/attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "framework/base/error.h"
#include "framework/parallel/attention_with_dropout.h"
#include "framework/parallel/random_rows.h"
#include "framework/parallel/random_state.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

constexpr std::int64_t kSamples = 2, kHeads = 4, kHeadWidth = 8;
constexpr std::int64_t kFew = 16, kMany = 512;  // positions, so that the weights are below and above the limit
constexpr double kRate = 0.25;
constexpr std::uint64_t kLayer = 9;
const RandomKey kStepKey{.step = 3, .first_row = 6};

static_assert(kSamples * kHeads * kFew * kFew * 8 < kAttentionAtOnceBytes);
static_assert(kSamples * kHeads / 2 * kMany * kMany * 8 >= kAttentionAtOnceBytes, "also on one of two ranks");

Dropout layer_with_dropout() {
  Dropout dropout(kRate);
  dropout->set_layer(kLayer);
  return dropout;
}

// Returns query, key and value, [n, positions, features of the heads].
std::vector<at::Tensor> attention_features(std::int64_t positions) {
  std::vector<at::Tensor> all;
  for (int which = 0; which < 3; ++which) {
    const at::Tensor angles =
        at::arange(kSamples * positions * kHeads * kHeadWidth, at::kDouble) * (0.61 + 0.17 * which);
    all.push_back(angles.sin().view({kSamples, positions, kHeads * kHeadWidth}).requires_grad_());
  }
  return all;
}

at::Tensor by_formula(const std::vector<at::Tensor>& x) {
  const auto by_head = [](const at::Tensor& x) { return x.unflatten(2, {kHeads, kHeadWidth}).transpose(1, 2); };
  const at::Tensor scores = at::matmul(by_head(x[0]), by_head(x[1]).transpose(2, 3)) / std::sqrt(double{kHeadWidth});
  const at::Tensor factors = dropout_factors(scores, kRate, kLayer, kStepKey);
  return at::matmul(scores.softmax(-1) * factors, by_head(x[2])).transpose(1, 2).flatten(2);
}

double gap(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

TEST(AttentionDropout, DropsTheSameWeightsInBlocksAsAtOnce) {
  for (const auto positions : {kFew, kMany}) {
    const Dropout dropout = layer_with_dropout();
    const auto x = attention_features(positions);
    const RandomRows rows(kStepKey);
    const at::Tensor output = attend(x[0], x[1], x[2], kHeadWidth, {}, dropout.get()), expected = by_formula(x);
    EXPECT_LT(gap(output, expected), 1e-12) << positions;
    const auto got = torch::autograd::grad({output.sin().sum()}, x);
    const auto wanted = torch::autograd::grad({expected.sin().sum()}, x);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_LT(gap(got[i], wanted[i]), 1e-11) << positions << ' ' << i;
  }
}

TEST(AttentionDropout, OfALayerThatIsShardedByHeadsIsThatOfTheWholeLayer) {
  for (const auto positions : {kFew, kMany}) {
    testing::run_ranks("inproc", 2, [&](const CommunicatorPtr& group) {
      Dropout dropout = layer_with_dropout();
      shard_by_heads(TensorStyle::kColumn, group, *dropout);
      const auto here = [&](const at::Tensor& whole) {
        return whole.narrow(2, group->rank() * kHeads / 2 * kHeadWidth, kHeads / 2 * kHeadWidth);
      };
      const auto x = attention_features(positions);
      const RandomRows rows(kStepKey);
      const at::Tensor output = attend(here(x[0]), here(x[1]), here(x[2]), kHeadWidth, {}, dropout.get());
      EXPECT_LT(gap(output, here(by_formula(x))), 1e-12) << positions;
    });
  }
}

// The output is linear in the values. So its product with the upstream gradient is that of the values with theirs, if
// backward drops what forward has dropped.
TEST(AttentionDropout, OutsideOfAStepIsRepeatedByBackwardAndByTheGenerator) {
  const Dropout dropout = layer_with_dropout();
  for (const auto positions : {kFew, kMany}) {
    const auto x = attention_features(positions);
    const at::Tensor upstream = x[1].detach().cos();
    const auto forward = [&] { return attend(x[0], x[1], x[2], kHeadWidth, {}, dropout.get()); };
    const at::Tensor state = random_state();
    const at::Tensor output = forward(), next = forward();
    EXPECT_FALSE(at::equal(output, next));
    set_random_state(state);
    EXPECT_TRUE(at::equal(output, forward()));
    const at::Tensor of_value = torch::autograd::grad({output}, {x[2]}, {upstream})[0];
    EXPECT_NEAR((of_value * x[2]).sum().item<double>(), (output * upstream).sum().item<double>(), 1e-8);
  }
}

TEST(AttentionDropout, OfConsecutivePartsIsThatOfTheWholeInput) {
  Dropout whole = layer_with_dropout(), part = layer_with_dropout();
  part->shard_positions(3, 1);
  const at::Tensor ones = at::ones({kSamples, 6, 5});
  const RandomRows rows(kStepKey);
  EXPECT_TRUE(at::equal(part->forward(ones.narrow(1, 2, 2)), whole->forward(ones).narrow(1, 2, 2)));
}

TEST(AttentionDropout, DropsNothingInEvaluation) {
  Dropout dropout = layer_with_dropout();
  dropout->eval();
  const auto x = attention_features(kMany);
  EXPECT_TRUE(at::equal(attend(x[0], x[1], x[2], kHeadWidth, {}, dropout.get()),
                        attend(x[0], x[1], x[2], kHeadWidth, {}, nullptr)));
}

TEST(AttentionDropout, CannotBeShardedByRow) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    Dropout dropout = layer_with_dropout();
    EXPECT_THROW(shard_by_heads(TensorStyle::kRow, group, *dropout), ConfigError);
  });
}

}  // namespace
}  // namespace phalanx
