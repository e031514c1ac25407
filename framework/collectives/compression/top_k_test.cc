// SPDX-License-Identifier: Apache-2.0
// Tests that topk sends the largest elements exactly, and the rest later.
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "framework/collectives/testing/compression.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_of;
using testing::make_compressor;
using Row = std::vector<float>;

Row values_of(const at::Tensor& tensor) {
  const auto* values = tensor.const_data_ptr<float>();
  return Row(values, values + tensor.numel());
}

TEST(TopK, EachRankSendsItsLargestMagnitudes) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const auto compressor = make_compressor("{name: topk, fraction: 0.4}", {5});
    const std::vector<Row> gradients = {{1, -9, 2, 0, 8}, {5, 4, 3, 2, -6}};
    at::Tensor tensor = at::tensor(gradients[group->rank()]);
    compressor->all_reduce_mean(*group, tensor);
    EXPECT_EQ(values_of(tensor), (Row{2.5, -4.5, 0, 0, 1})) << "rank 0: -9 and 8; rank 1: 5 and -6";

    tensor = at::zeros({5});
    compressor->all_reduce_mean(*group, tensor);
    EXPECT_EQ(values_of(tensor), (Row{0.5, 2, 2.5, 0, 0})) << "rank 0 had left 1, 2 and rank 1 4, 3";

    tensor = at::zeros({5});
    compressor->all_reduce_mean(*group, tensor);
    EXPECT_EQ(values_of(tensor), (Row{0, 0, 0, 1, 0})) << "rank 1 had left 2";
  });
}

TEST(TopK, AFractionOfZeroSendsOneElement) {
  testing::run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    const at::Tensor tensor = at::tensor(Row{1, -3, 2});
    EXPECT_EQ(make_compressor("{name: topk, fraction: 0}", {3})->all_reduce_mean(*group, tensor), 8);
    EXPECT_EQ(values_of(tensor), (Row{0, -3, 0}));
  });
}

TEST(TopK, AFractionOfOneIsExact) {
  testing::run_ranks("inproc", 4, [](const CommunicatorPtr& group) {
    const at::Tensor tensor = gradient_of(group->rank(), 0, 100);
    make_compressor("{name: topk, fraction: 1}", {100})->all_reduce_mean(*group, tensor);
    EXPECT_LT((tensor - testing::mean_gradient(4, 0, 100)).abs().max().item<double>(), 1e-6);
  });
}

// The recurrence: e += g; the k largest |e| are sent and removed from e; the mean of the sent values is delivered.
class TopKReference {
 public:
  TopKReference(int ranks, std::size_t elements, std::size_t k) : residuals_(ranks, Row(elements)), k_(k) {}

  Row step(const std::vector<Row>& gradients) {
    Row sum(gradients[0].size());
    for (std::size_t rank = 0; rank < gradients.size(); ++rank) {
      Row& residual = residuals_[rank];
      std::vector<std::size_t> order(residual.size());
      std::iota(order.begin(), order.end(), 0);
      for (const auto i : order) residual[i] += gradients[rank][i];
      std::ranges::sort(order, std::greater(), [&](auto i) { return std::abs(residual[i]); });
      for (std::size_t i = 0; i < k_; ++i) sum[order[i]] += std::exchange(residual[order[i]], 0.0F);
    }
    for (float& value : sum) value /= static_cast<float>(gradients.size());
    return sum;
  }

 private:
  std::vector<Row> residuals_;
  std::size_t k_;
};

class TopKOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, TopKOf, ::testing::Range(2, 6));

TEST_P(TopKOf, FollowsItsRecurrenceBitForBit) {
  const int ranks = GetParam();
  testing::run_ranks("inproc", ranks, [ranks](const CommunicatorPtr& group) {
    constexpr std::int64_t kSize = 211;
    const auto compressor = make_compressor("{name: topk, fraction: 0.1}", {kSize});
    TopKReference reference(ranks, kSize, 22);
    for (int step = 0; step < 20; ++step) {
      std::vector<Row> gradients;
      for (int rank = 0; rank < ranks; ++rank) gradients.push_back(values_of(gradient_of(rank, step, kSize)));
      const at::Tensor tensor = gradient_of(group->rank(), step, kSize);
      compressor->all_reduce_mean(*group, tensor);
      ASSERT_EQ(values_of(tensor), reference.step(gradients)) << "step " << step;
    }
  });
}

}  // namespace
}  // namespace phalanx
