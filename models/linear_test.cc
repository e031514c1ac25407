// SPDX-License-Identifier: Apache-2.0
// Tests that linear layers compute the same as LibTorch's, up to rounding, and put gradients where they belong.
#include "models/linear.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "framework/parallel/autocast.h"
#include "models/testing/deferral.h"

namespace phalanx {
namespace {

constexpr std::int64_t kIn = 37, kOut = 23;

at::Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes).requires_grad_(); }

at::Tensor with_gradient(at::Tensor parameter) {
  parameter.mutable_grad() = at::zeros_like(parameter);
  return parameter;
}

// Results computed from copies of the same leaves.
struct Computed {
  at::Tensor output, of_input, of_weight, of_bias;
};

template <class Layer>
Computed compute(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias, const Layer& layer) {
  const auto copy = [](const at::Tensor& tensor) {
    return tensor.defined() ? with_gradient(tensor.detach().clone().requires_grad_()) : tensor;
  };
  const at::Tensor x = copy(input), w = copy(weight), b = copy(bias);
  const at::Tensor output = layer(x, w, b);
  (output * output).sum().backward();
  return {output.detach(), x.grad(), w.grad(), b.defined() ? b.grad() : b};
}

void expect_close(const at::Tensor& actual, const at::Tensor& expected) {
  ASSERT_EQ(actual.defined(), expected.defined());
  if (!actual.defined()) return;
  ASSERT_EQ(actual.sizes(), expected.sizes());
  EXPECT_TRUE(at::allclose(actual, expected, 1e-4, 1e-4)) << (actual - expected).abs().max();
}

struct Case {
  std::vector<std::int64_t> input;
  WeightLayout layout;
  bool bias;
};

class LinearOf : public ::testing::TestWithParam<Case> {};

TEST_P(LinearOf, ComputesAsLinearOfLibTorch) {
  const bool out_in = GetParam().layout == WeightLayout::kOutIn;
  const at::Tensor input = at::randn(GetParam().input);
  const at::Tensor weight = out_in ? at::randn({kOut, kIn}) : at::randn({kIn, kOut});
  const at::Tensor bias = GetParam().bias ? at::randn({kOut}) : at::Tensor();
  const auto actual = compute(input, weight, bias, [](const auto& x, const auto& w, const auto& b) {
    return apply_linear(x, w, b, GetParam().layout);
  });
  const auto expected = compute(input, weight, bias, [&](const auto& x, const auto& w, const auto& b) {
    return at::linear(x, out_in ? w : w.t(), b.defined() ? std::optional(b) : std::nullopt);
  });
  expect_close(actual.output, expected.output);
  expect_close(actual.of_input, expected.of_input);
  expect_close(actual.of_weight, expected.of_weight);
  expect_close(actual.of_bias, expected.of_bias);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LinearOf,
    ::testing::Values(Case{{5, kIn}, WeightLayout::kOutIn, true}, Case{{5, kIn}, WeightLayout::kOutIn, false},
                      Case{{5, kIn}, WeightLayout::kInOut, true}, Case{{1, kIn}, WeightLayout::kInOut, false},
                      Case{{3, 4, kIn}, WeightLayout::kOutIn, true}, Case{{3, 4, kIn}, WeightLayout::kInOut, true},
                      Case{{2, 3, 4, kIn}, WeightLayout::kOutIn, false}, Case{{kIn}, WeightLayout::kOutIn, true},
                      Case{{0, kIn}, WeightLayout::kOutIn, true}));

TEST(Linear, TakesInputsOfAnyStrides) {
  const at::Tensor weight = at::randn({kOut, kIn}), bias = at::randn({kOut});
  const at::Tensor columns = at::randn({kIn, 8}).t(), every_other = at::randn({8, 2, kIn}).select(1, 1);
  expect_close(apply_linear(columns, weight, bias), at::linear(columns, weight, bias));
  expect_close(apply_linear(every_other, weight, bias), at::linear(every_other, weight, bias));
}

TEST(Linear, AddsToAnExistingGradient) {
  const at::Tensor input = at::randn({6, kIn});
  Linear layer(kIn, kOut);
  with_gradient(layer->weight);
  const void* const place = layer->weight.grad().data_ptr();
  layer(input).sum().backward();
  const at::Tensor once = layer->weight.grad().clone();
  layer(input).sum().backward();
  EXPECT_EQ(layer->weight.grad().data_ptr(), place);
  expect_close(layer->weight.grad(), once * 2);
  EXPECT_GT(once.abs().sum().item<double>(), 0);
}

TEST(Linear, CreatesAGradientIfThereIsNone) {
  Linear layer(kIn, kOut);
  layer(at::ones_like(at::randn({6, kIn}))).sum().backward();
  ASSERT_TRUE(layer->weight.grad().defined());
  expect_close(layer->weight.grad(), at::ones_like(layer->weight) * 6);
}

TEST(Linear, IsInitializedAsLibTorchs) {
  at::manual_seed(7);
  const Linear ours(kIn, kOut);
  at::manual_seed(7);
  const torch::nn::Linear theirs(kIn, kOut);
  EXPECT_TRUE(at::equal(ours->weight, theirs->weight));
  EXPECT_TRUE(at::equal(ours->bias, theirs->bias));
}

// A weight that is also used by an embedding gets both gradients. Its node runs once, when both are available.
TEST(Linear, SharesItsWeight) {
  const at::Tensor indices = at::tensor({1, 0, 3}, at::kLong);
  const at::Tensor weight = at::randn({5, kIn});
  const auto tied = [&](const auto& layer) {
    const at::Tensor shared = with_gradient(weight.clone().requires_grad_());
    layer(at::embedding(shared, indices), shared).square().sum().backward();
    return shared.grad();
  };
  expect_close(tied([](const at::Tensor& x, const at::Tensor& w) { return apply_linear(x, w, {}); }),
               tied([](const at::Tensor& x, const at::Tensor& w) { return at::linear(x, w); }));
}

TEST(Linear, ReturnsItsGradientToAutogradGrad) {
  const at::Tensor input = leaf({6, kIn}), weight = with_gradient(leaf({kOut, kIn}));
  const auto gradients = torch::autograd::grad({apply_linear(input, weight, {}).sum()}, {weight, input});
  expect_close(gradients[0], input.detach().sum(0).expand_as(weight));
  EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0);
}

TEST(Linear, PassesItsGradientToHooksOfTheWeight) {
  const at::Tensor input = at::randn({6, kIn}), weight = with_gradient(leaf({kOut, kIn}));
  weight.register_hook([](const at::Tensor& gradient) { return gradient * 3; });
  apply_linear(input, weight, {}).sum().backward();
  expect_close(weight.grad(), 3 * input.sum(0).expand_as(weight));
}

TEST(Linear, HasDerivativesOfDerivatives) {
  const at::Tensor input = leaf({6, kIn}), weight = with_gradient(leaf({kOut, kIn}));
  const auto second = [&](const at::Tensor& output) {
    const auto first = torch::autograd::grad({output.pow(3).sum()}, {input}, {}, {}, /*create_graph=*/true);
    return torch::autograd::grad({first[0].square().sum()}, {weight})[0];
  };
  const at::Tensor expected = second(at::linear(input, weight)), actual = second(apply_linear(input, weight, {}));
  EXPECT_TRUE(at::allclose(actual, expected, 1e-3, 1e-3 * expected.abs().max().item<double>()))
      << (actual - expected).abs().max();
}

TEST(Linear, RunsBackwardTwiceThroughARetainedGraph) {
  const at::Tensor input = leaf({6, kIn}), weight = with_gradient(leaf({kOut, kIn}));
  const at::Tensor output = apply_linear(input, weight, {}).sum();
  output.backward({}, /*retain_graph=*/true);
  output.backward();
  expect_close(weight.grad(), 2 * input.detach().sum(0).expand_as(weight));
}

TEST(Linear, LeavesFrozenWeightsAlone) {
  const at::Tensor input = leaf({6, kIn}), weight = with_gradient(leaf({kOut, kIn}));
  const at::Tensor output = apply_linear(input, weight, {}).sum();
  weight.requires_grad_(false);
  output.backward();
  EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0) << "frozen since";
  apply_linear(input, weight, {}).sum().backward();
  EXPECT_EQ(weight.grad().abs().sum().item<double>(), 0);
  expect_close(input.grad(), 2 * weight.detach().sum(0).expand_as(input));
}

TEST(Linear, AcceptsTensorsThatOneDnnDoesNot) {
  const at::Tensor bias = at::randn({kOut}), nothing = at::randn({6, 0}), no_weight = at::randn({kOut, 0});
  expect_close(apply_linear(nothing, no_weight, bias), bias.expand({6, kOut}));
  const at::Tensor input = at::randn({6, kIn}), expanded = at::randn({1, kIn}).expand({kOut, kIn});
  expect_close(apply_linear(input, expanded, bias), at::linear(input, expanded, bias));
}

TEST(Linear, AcceptsComputedWeights) {
  const at::Tensor input = at::randn({6, kIn}), scale = leaf({1}), weight = leaf({kOut, kIn});
  apply_linear(input, weight * scale, {}).sum().backward();
  expect_close(weight.grad(), (input.sum(0) * scale.detach()).expand_as(weight));
}

TEST(Linear, ComputesInTheConfiguredPrecision) {
  const at::Tensor input = at::randn({6, kIn}), weight = with_gradient(leaf({kOut, kIn}));
  const Autocast autocast(at::kCPU, at::kBFloat16);
  const at::Tensor output = apply_linear(input, weight, {});
  EXPECT_EQ(output.scalar_type(), at::kBFloat16);
  output.sum().backward();
  EXPECT_TRUE(at::allclose(weight.grad(), input.sum(0).expand_as(weight), 1e-2, 1e-1));
}

TEST(Linear, RefusesWhatDoesNotFit) {
  const at::Tensor weight = at::randn({kOut, kIn});
  EXPECT_THROW(apply_linear(at::randn({6, kIn + 1}), weight, {}), c10::Error);
  EXPECT_THROW(apply_linear(at::randn({6, kIn}), weight, at::randn({kOut - 1})), c10::Error);
}

TEST(Linear, ComputesInDoublePrecision) {
  const at::Tensor input = at::randn({6, kIn}, at::kDouble), weight = at::randn({kOut, kIn}, at::kDouble);
  EXPECT_TRUE(at::equal(apply_linear(input, weight, {}), at::linear(input, weight)));
}

TEST(Linear, CanDeferTheGradientOfItsWeight) {
  const at::Tensor input = leaf({6, kIn}), weight = with_gradient(leaf({kOut, kIn}));
  testing::expect_put_off(apply_linear(input, weight, {}), input, weight, expect_close);
}

}  // namespace
}  // namespace phalanx
