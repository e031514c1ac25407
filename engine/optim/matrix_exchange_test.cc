// SPDX-License-Identifier: Apache-2.0
// Tests the collection of matrices on one of the ranks that hold their parts.
#include "engine/optim/matrix_exchange.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "framework/testing/worlds.h"

namespace phalanx {
namespace {

using testing::run_ranks;

Placement part_of(std::vector<std::int64_t> shape, std::int64_t dim, int rank, int ranks) {
  const auto size = shape[static_cast<std::size_t>(dim)];
  return {.shape = std::move(shape), .dim = dim, .ranges = {nearly_equal_part(size, rank, ranks)}};
}

at::Tensor numbers(at::IntArrayRef shape, double first) {
  std::int64_t count = 1;
  for (const auto size : shape) count *= size;
  return (at::arange(count, at::kDouble) + first).view(shape);
}

// Computes a result that no rank could compute from its part.
at::Tensor updated(const at::Tensor& whole) { return whole * whole.sum(); }

TEST(MatrixExchange, GivesEachRankItsPartOfTheUpdatedMatrix) {
  run_ranks("inproc", 3, [](const CommunicatorPtr& group) {
    const std::vector<std::string> names{"wide", "tall", "experts"};
    const std::vector<std::vector<std::int64_t>> shapes{{4, 7}, {9, 3}, {3, 2, 5}};
    Placements placements;
    std::vector<at::Tensor> parts;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto placement = part_of(shapes[i], i == 0 ? 1 : 0, group->rank(), 3);
      placements.emplace(names[i], placement);
      parts.push_back(placement.take(numbers(shapes[i], static_cast<double>(i))));
    }
    MatrixExchange exchange(group, placements, at::kDouble);
    EXPECT_EQ(exchange.placement("whole"), nullptr);
    exchange.attach(names);
    for (int time = 0; time < 2; ++time) {
      std::size_t computed = 0;
      std::vector<at::Tensor> moved;
      for (const auto& part : parts) moved.push_back(part.clone());
      exchange.update(moved, [&](const at::Tensor& whole) {
        ++computed;
        return updated(whole);
      });
      EXPECT_EQ(computed, exchange.owned());
      for (std::size_t i = 0; i < names.size(); ++i) {
        const auto expected = placements.at(names[i]).take(updated(numbers(shapes[i], static_cast<double>(i))));
        EXPECT_TRUE(at::equal(moved[i], expected)) << names[i];
      }
    }
    const at::Tensor owned = at::full({1}, static_cast<double>(exchange.owned()), at::kDouble);
    group->all_reduce(owned, Reduction::kMax).wait();
    EXPECT_EQ(owned.item<double>(), 1) << "of three matrices, each rank computes one";
  });
}

// Ranks 0 and 1 are one replica, and ranks 2 and 3 another one, with different gradients.
TEST(MatrixExchange, ReplicasComputeTheirOwnUpdates) {
  run_ranks("inproc", 4, [](const CommunicatorPtr& group) {
    const int place = group->rank() % 2, replica = group->rank() / 2;
    const auto placement = part_of({6, 4}, 0, place, 2);
    MatrixExchange exchange(group, {{"weight", placement}}, at::kDouble);
    exchange.attach({"weight"});
    const at::Tensor whole = numbers({6, 4}, replica);
    std::vector<at::Tensor> parts{placement.take(whole)};
    exchange.update(parts, updated);
    EXPECT_TRUE(at::equal(parts[0], placement.take(updated(whole))));
  });
}

TEST(MatrixExchange, RefusesAMatrixWithAMissingPart) {
  run_ranks("inproc", 2, [](const CommunicatorPtr& group) {
    MatrixExchange exchange(group, {{"weight", part_of({6, 4}, 0, group->rank(), 3)}}, at::kFloat);
    EXPECT_THROW(exchange.attach({"weight"}), std::logic_error);
  });
}

}  // namespace
}  // namespace phalanx
