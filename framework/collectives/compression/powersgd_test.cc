// SPDX-License-Identifier: Apache-2.0
#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/collectives/testing/compression.h"
#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::gradient_of;
using testing::make_compressor;
using testing::mean_gradient;
using testing::run_ranks;

double relative_error(const at::Tensor& value, const at::Tensor& truth) {
  return ((value - truth).norm() / truth.norm()).item<double>();
}

// Returns a [rows, columns] matrix of the given rank.
at::Tensor low_rank(int seed, std::int64_t rows, std::int64_t columns, std::int64_t rank) {
  return at::matmul(gradient_of(seed, 0, rows * rank).view({rows, rank}),
                    gradient_of(seed, 1, rank * columns).view({rank, columns}));
}

class PowerSgd : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, PowerSgd, ::testing::Range(2, 6));

TEST_P(PowerSgd, IsExactWhereTheMeanHasNoHigherRank) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto compressor = make_compressor("{name: powersgd, rank: 3}", {600, {{20, 30}}});
    for (int step = 0; step < 4; ++step) {
      // Each rank has a matrix of full rank, but the mean is only the common matrix of rank 3.
      const at::Tensor common = low_rank(100 + step, 20, 30, 3);
      at::Tensor own = gradient_of(group->rank(), step, 600);
      own -= mean_gradient(group->size(), step, 600).to(at::kFloat);
      const at::Tensor tensor = (common.flatten() + own).contiguous();
      compressor->all_reduce_mean(*group, tensor);
      EXPECT_LT(relative_error(tensor.view({20, 30}), common), 1e-4) << "step " << step;
    }
  });
}

TEST_P(PowerSgd, ALowerRankThanAskedForIsExactToo) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const auto compressor = make_compressor("{name: powersgd, rank: 4}", {600, {{20, 30}}});
    for (const int rank : {1, 0, 4, 2}) {
      const at::Tensor truth = rank == 0 ? at::zeros({20, 30}) : low_rank(7 + rank, 20, 30, rank);
      const at::Tensor tensor = truth.flatten().clone();
      compressor->all_reduce_mean(*group, tensor);
      EXPECT_LT((tensor - truth.flatten()).norm().item<double>(), 1e-3) << "rank " << rank;
    }
  });
}

TEST_P(PowerSgd, DeliversMatricesOfItsRank) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const at::Tensor tensor = gradient_of(group->rank(), 0, 600);
    make_compressor("{name: powersgd, rank: 3}", {600, {{20, 30}}})->all_reduce_mean(*group, tensor);
    const at::Tensor singular = at::linalg_svdvals(tensor.view({20, 30}));
    EXPECT_GT(singular[2].item<double>(), 1e-2);
    EXPECT_LT(singular[3].item<double>(), 1e-5);
    const double whole = mean_gradient(group->size(), 0, 600).norm().item<double>();
    EXPECT_LT((mean_gradient(group->size(), 0, 600) - tensor).norm().item<double>(), whole) << "a projection";
  });
}

TEST_P(PowerSgd, VectorsAndSmallMatricesAreExact) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    // The 4-dimensional parameter is a matrix [8, 6 * 3 * 3]. [3, 2] would be no smaller as factors of rank 2. [0, 5]
    // is empty.
    const BucketLayout layout{432 + 11 + 6 + 1, {{8, 6, 3, 3}, {11}, {3, 2}, {0, 5}, {}}};
    const auto compressor = make_compressor("{name: powersgd, rank: 2}", layout);
    for (int step = 0; step < 3; ++step) {
      const at::Tensor tensor = gradient_of(group->rank(), step, layout.elements);
      const auto sent = compressor->all_reduce_mean(*group, tensor);
      const auto size = group->size();
      EXPECT_EQ(sent, all_reduce_bytes(4 * (8 * 2 + 18), size) + all_reduce_bytes(4 * 54 * 2, size));
      const at::Tensor exact = mean_gradient(size, step, layout.elements);
      EXPECT_LT((tensor - exact).narrow(0, 432, 18).abs().max().item<double>(), 1e-6);
      EXPECT_GT((tensor - exact).narrow(0, 0, 432).abs().max().item<double>(), 1e-2);
    }
  });
}

// Simulates gradients that change slowly and have a few dominant directions. Returns the norm of the undelivered part.
double missing_after(int steps, const std::string& yaml, Communicator& group) {
  const auto compressor = make_compressor(yaml, {1600, {{40, 40}}});
  at::Tensor missing = at::zeros({1600}, at::kDouble);
  for (int step = 0; step < steps; ++step) {
    const at::Tensor truth = (low_rank(50, 40, 40, 2) * 4 + low_rank(60 + step, 40, 40, 10) * 0.2).flatten();
    const at::Tensor tensor = truth.clone();
    compressor->all_reduce_mean(group, tensor);
    missing += truth - tensor;
  }
  return missing.norm().item<double>();
}

TEST_P(PowerSgd, AWarmStartFindsTheDirectionsThatMatter) {
  run_ranks("inproc", GetParam(), [](const CommunicatorPtr& group) {
    const double warm = missing_after(20, "{name: powersgd, rank: 2}", *group);
    const double cold = missing_after(20, "{name: powersgd, rank: 2, warm_start: false}", *group);
    EXPECT_LT(warm, 0.9 * cold);
  });
}

}  // namespace
}  // namespace phalanx
