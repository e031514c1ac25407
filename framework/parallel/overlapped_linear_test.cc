// SPDX-License-Identifier: Apache-2.0
// Compares overlapped products with the collective and the product one after the other.
#include "framework/parallel/overlapped_linear.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/matmul.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <stdexcept>
#include <vector>

#include "framework/parallel/autograd_collectives.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;
using Product = std::function<at::Tensor(const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group)>;

at::Tensor waves(at::IntArrayRef sizes, int rank) {
  std::int64_t count = 1;
  for (const auto size : sizes) count *= size;
  return (at::arange(count, at::kDouble) * 0.7 + rank).cos().view(sizes);
}

// Returns the product and the gradients of both factors. Each rank begins backward with its own gradient.
std::vector<at::Tensor> all_of(const Product& product, at::IntArrayRef sizes, const CommunicatorPtr& group) {
  const at::Tensor x = waves(sizes, group->rank()).requires_grad_();
  const at::Tensor matrix = waves({4, 6}, 10 + group->rank()).requires_grad_();
  const at::Tensor y = product(x, matrix, group);
  auto all = torch::autograd::grad({y}, {x, matrix}, {waves(y.sizes(), 20 + group->rank())});
  all.push_back(y.detach());
  return all;
}

void expect_same(const Product& product, const Product& one_by_one, at::IntArrayRef sizes) {
  for (const int ranks : {1, 2, 3, 4}) {
    run_ranks("inproc", ranks, [&](const CommunicatorPtr& group) {
      const auto got = all_of(product, sizes, group), expected = all_of(one_by_one, sizes, group);
      for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(at::allclose(got[i], expected[i], 1e-12, 1e-12)) << i;
    });
  }
}

TEST(OverlappedLinear, GathersWhileItMultiplies) {
  const Product one_by_one = [](const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group) {
    return at::matmul(gather_summed(x, -2, group), matrix);
  };
  expect_same(gathered_product, one_by_one, {2, 5, 4});
  expect_same(gathered_product, one_by_one, {5, 4});
}

TEST(OverlappedLinear, ScattersWhileItMultiplies) {
  const Product one_by_one = [](const at::Tensor& x, const at::Tensor& matrix, const CommunicatorPtr& group) {
    return sum_and_scatter(at::matmul(x, matrix), -2, group);
  };
  expect_same(scattered_product, one_by_one, {2, 12, 4});
  expect_same(scattered_product, one_by_one, {12, 4});
}

TEST(OverlappedLinear, RefusesUnequalPartsAndSecondDerivatives) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const at::Tensor matrix = waves({4, 6}, 0).requires_grad_();
    EXPECT_THROW(scattered_product(waves({5, 4}, 0), matrix, group), std::invalid_argument);
    const at::Tensor y = gathered_product(waves({3, 4}, group->rank()), matrix, group);
    EXPECT_THROW(torch::autograd::grad({y.sum()}, {matrix}, {}, {}, /*create_graph=*/true), c10::Error);
  });
}

}  // namespace
}  // namespace phalanx
