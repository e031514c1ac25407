// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "framework/kernels/kernel_comparison.h"
#include "framework/kernels/kernels.h"

namespace phalanx::kernels {
namespace {

struct BatchNorm {
  explicit BatchNorm(const at::Tensor& input, double offset = 0)
      : x(input + offset), weight(at::randn({x.size(1)})), bias(at::randn({x.size(1)})), of_y(at::randn(x.sizes())) {}

  // Returns the result, the gradients of input, weight and bias, and the running mean and variance.
  std::vector<at::Tensor> compute(at::ScalarType dtype) const {
    std::vector<at::Tensor> leaves;
    for (const auto& tensor : {x, weight, bias}) leaves.push_back(tensor.to(dtype).detach().requires_grad_(true));
    auto mean = at::full({x.size(1)}, 0.5, dtype), variance = at::full({x.size(1)}, 2, dtype);
    const auto y = at::batch_norm(leaves[0], leaves[1], leaves[2], mean, variance, true, 0.1, 1e-5, false);
    auto results = torch::autograd::grad({y}, leaves, {of_y.to(dtype)});
    results.insert(results.begin(), y.detach());
    results.insert(results.end(), {mean, variance});
    return results;
  }

  at::Tensor x, weight, bias, of_y;
};

void expect_as_exact_as_libtorchs(const BatchNorm& norm) {
  const auto exact = norm.compute(at::kDouble), theirs = norm.compute(at::kFloat);
  const Registration registered;
  const auto ours = norm.compute(at::kFloat);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_EQ(ours[i].strides(), theirs[i].strides());
    EXPECT_LE(largest_error(ours[i], exact[i]), std::max(2 * largest_error(theirs[i], exact[i]), 4 * unit_of(exact[i])))
        << "result " << i;
  }
}

TEST(BatchNorm, IsAsExactAsLibTorchs) {
  at::manual_seed(1);
  for (const auto& sizes : std::vector<std::vector<std::int64_t>>{
           {16, 64, 8, 8}, {3, 5, 7, 9}, {1, 2, 4, 4}, {2, 3, 1, 17}, {4, 2, 70}, {2, 2, 3, 5, 7}, {8, 3, 40, 40}}) {
    SCOPED_TRACE(::testing::Message() << at::IntArrayRef(sizes));
    expect_as_exact_as_libtorchs(BatchNorm(at::randn(sizes)));
    expect_as_exact_as_libtorchs(BatchNorm(at::randn(sizes), 1000));
    expect_as_exact_as_libtorchs(BatchNorm(at::randn(sizes) * 1e-6));
  }
}

// LibTorch computes these: too few elements in a row, channels that lie together, float64.
TEST(BatchNorm, TakesTensorsOfAnyLayout) {
  const auto x = at::randn({4, 6, 8, 8});
  for (const auto& layout : {x.contiguous(at::MemoryFormat::ChannelsLast), x.transpose(2, 3), x.slice(3, 0, 8, 2),
                             x.narrow(0, 0, 1).expand({3, 6, 8, 8}), at::randn({9, 4}), at::randn({5, 3, 2, 2})}) {
    expect_as_exact_as_libtorchs(BatchNorm(layout));
  }
}

TEST(BatchNorm, UsesOurCodeInTrainingOnly) {
  const BatchNorm norm(at::randn({8, 16, 12, 12}), 3);
  const auto evaluate = [&] {
    return at::batch_norm(norm.x, norm.weight, norm.bias, at::zeros({16}), at::ones({16}), false, 0.1, 1e-5, false);
  };
  const auto theirs = norm.compute(at::kFloat)[0], evaluated = evaluate();
  const Registration registered;
  EXPECT_FALSE(at::equal(norm.compute(at::kFloat)[0], theirs)) << "they differ in last bits";
  EXPECT_TRUE(at::equal(evaluate(), evaluated));
}

TEST(BatchNorm, NeedsNoWeightBiasOrRunningStatistics) {
  const auto x = at::randn({2, 3, 5, 5});
  const auto all = [&] {
    return std::vector<at::Tensor>{at::batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false),
                                   std::get<0>(at::_native_batch_norm_legit(x, {}, {}, true, 0.1, 1e-5)),
                                   std::get<2>(at::native_batch_norm(x, at::ones({3}), {}, {}, {}, true, 0.1, 1e-5))};
  };
  const auto theirs = all();
  const Registration registered;
  const auto ours = all();
  for (std::size_t i = 0; i < theirs.size(); ++i) EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-5, 1e-6)) << i;
}

TEST(BatchNorm, TakesNumbersThatAreNotFinite) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float value : {kInfinity, -kInfinity, std::nanf("")}) {
    for (const std::int64_t place : {0, 77}) {
      auto x = at::randn({2, 2, 8, 8});
      x.view(-1)[place] = value;
      const BatchNorm norm(x);
      const auto theirs = norm.compute(at::kFloat);
      const Registration registered;
      const auto ours = norm.compute(at::kFloat);
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-4, 1e-4, /*equal_nan=*/true)) << "result " << i;
      }
    }
  }
}

TEST(BatchNorm, OfEqualElementsIsTheBias) {
  const Registration registered;
  const BatchNorm norm(at::full({3, 2, 5, 5}, 0.1));
  const auto y = norm.compute(at::kFloat)[0];
  EXPECT_TRUE(at::allclose(y, norm.bias.view({1, 2, 1, 1}).expand_as(y), 0, 1e-5));
}

TEST(BatchNorm, HasTheSameBitsOnAnyNumberOfThreads) {
  const BatchNorm norm(at::randn({16, 32, 16, 16}));
  const Registration registered;
  const auto compute = [&] { return norm.compute(at::kFloat); };
  const auto one = with_threads(1, compute), three = with_threads(3, compute);
  for (const std::size_t i : {0, 4, 5}) EXPECT_TRUE(at::equal(one[i], three[i])) << "result " << i;
}

}  // namespace
}  // namespace phalanx::kernels
