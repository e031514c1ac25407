// SPDX-License-Identifier: Apache-2.0
// Tests every registered algorithm of all_reduce, reduce and reduce_scatter, against values computed without it.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "framework/collectives/testing/algorithm_cases.h"
#include "framework/collectives/testing/expected.h"
#include "framework/comm/operations/arguments.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::testing {
namespace {

class AllReduce : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, AllReduce, ::testing::ValuesIn(cases(Op::kAllReduce)), name_of);

TEST_P(AllReduce, CombinesAllRanksInOrder) {
  run([&](const CommunicatorPtr& world) {
    const auto check = [&](const Reducing& reducing, std::int64_t elements) {
      const Guarded memory(contribution(world->rank(), elements, reducing.dtype));
      if (!does(world, checked_all_reduce(*world, memory.tensor(), reducing.op))) return;
      EXPECT_TRUE(at::equal(memory.tensor(), reduced(reducing, ranks(), elements)))
          << reducing.op.name() << " of " << elements << ' ' << reducing.dtype;
      EXPECT_TRUE(memory.intact());
    };
    for (const auto& reducing : reducings()) check(reducing, 1009);
    for (const auto count : elements()) {
      check(reducings().front(), count);
      check(reducings().back(), count);
    }
    check(reducings().front(), several_chunks());
    check(reducings().back(), several_chunks());
  });
}

TEST_P(AllReduce, GivesAllRanksTheSameBits) {
  std::vector<at::Tensor> means(ranks()), least(ranks());
  run([&](const CommunicatorPtr& world) {
    const int rank = world->rank();
    // Sums that depend on the order of addition, and minima of NaNs and of zeros of both signs.
    const at::Tensor waves = at::arange(1003, c10::kFloat).sin_().mul_(1e3 * (rank + 1)).add_(1e-3);
    const at::Tensor zeros = at::zeros({1003}, c10::kFloat).mul_(rank % 2 == 0 ? 1 : -1);
    zeros[rank] = std::numeric_limits<float>::quiet_NaN();
    does(world, checked_all_reduce(*world, waves, Reduction::kMean));
    does(world, checked_all_reduce(*world, zeros, Reduction::kMin));
    means[rank] = waves;
    least[rank] = zeros;
  });
  for (const auto* results : {&means, &least}) {
    for (const at::Tensor& result : *results) {
      EXPECT_EQ(std::memcmp(result.const_data_ptr(), results->front().const_data_ptr(), result.nbytes()), 0);
    }
  }
}

class Reduce : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, Reduce, ::testing::ValuesIn(cases(Op::kReduce)), name_of);

TEST_P(Reduce, CombinesOnRootAndOnlyReadsTheOthers) {
  run([&](const CommunicatorPtr& world) {
    const auto check = [&](const Reducing& reducing, std::int64_t elements, int root) {
      const at::Tensor own = contribution(world->rank(), elements, reducing.dtype);
      const Guarded memory(own);
      if (!does(world, checked_reduce(*world, memory.tensor(), reducing.op, root))) return;
      EXPECT_TRUE(at::equal(memory.tensor(), world->rank() == root ? reduced(reducing, ranks(), elements) : own))
          << reducing.op.name() << " of " << elements << ' ' << reducing.dtype << " on " << root;
      EXPECT_TRUE(memory.intact());
    };
    for (const auto& reducing : reducings()) check(reducing, 1009, ranks() / 3);
    for (const auto count : elements()) {
      check(reducings().front(), count, static_cast<int>(count) % ranks());
      check(reducings().back(), count, static_cast<int>(count) % ranks());
    }
    for (const int root : roots()) check(reducings().back(), 37, root);
    check(reducings().front(), several_chunks(), ranks() / 2);
    check(reducings().back(), several_chunks(), ranks() / 2);
  });
}

class ReduceScatter : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, ReduceScatter, ::testing::ValuesIn(cases(Op::kReduceScatter)), name_of);

TEST_P(ReduceScatter, CombinesEachPartOnItsRank) {
  run([&](const CommunicatorPtr& world) {
    const auto check = [&](const Reducing& reducing, const std::vector<std::int64_t>& counts, bool aliases) {
      const auto passed = even(counts) ? std::vector<std::int64_t>{} : counts;
      const PartLayout parts(counts, ranks(), sum(counts));
      const Guarded input(contribution(world->rank(), sum(counts), reducing.dtype));
      const Guarded own(counts[world->rank()], reducing.dtype);
      const at::Tensor output = aliases ? parts.of(input.tensor(), world->rank()) : own.tensor();
      if (!does(world, checked_reduce_scatter(*world, output, input.tensor(), reducing.op, passed))) return;
      EXPECT_TRUE(at::equal(output, parts.of(reduced(reducing, ranks(), sum(counts)), world->rank())))
          << reducing.op.name() << " of " << at::IntArrayRef(counts) << ' ' << reducing.dtype;
      at::Tensor before = contribution(world->rank(), sum(counts), reducing.dtype);
      if (aliases) parts.of(before, world->rank()).copy_(output);
      EXPECT_TRUE(at::equal(input.tensor(), before)) << "wrote to the input";
      EXPECT_TRUE(input.intact() && own.intact());
    };
    for (const auto& reducing : reducings()) check(reducing, uneven_counts(ranks(), 1), true);
    for (const auto& each : counts()) {
      for (const bool aliases : {false, true}) check(reducings().front(), each, aliases);
      check(reducings().back(), each, false);
    }
  });
}

}  // namespace
}  // namespace phalanx::testing
