// SPDX-License-Identifier: Apache-2.0
// Tests every registered algorithm of the operations that only move elements, against values computed without it.
#include <ATen/ops/concat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <atomic>

#include "framework/collectives/testing/algorithm_cases.h"
#include "framework/collectives/testing/expected.h"
#include "framework/comm/operations/arguments.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::testing {
namespace {

class Broadcast : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, Broadcast, ::testing::ValuesIn(cases(Op::kBroadcast)), name_of);

TEST_P(Broadcast, GivesAllRanksTheElementsOfRoot) {
  run([&](const CommunicatorPtr& world) {
    const auto check = [&](std::int64_t elements, int root, c10::ScalarType dtype) {
      const Guarded memory(contribution(world->rank(), elements, dtype));
      does(world, checked_broadcast(*world, memory.tensor(), root));
      EXPECT_TRUE(at::equal(memory.tensor(), contribution(root, elements, dtype))) << elements << " of " << root;
      EXPECT_TRUE(memory.intact());
    };
    for (const int root : roots()) {
      for (const auto count : elements()) check(count, root, c10::kBFloat16);
    }
    check(several_chunks(), ranks() / 2, c10::kLong);
  });
}

class AllGather : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, AllGather, ::testing::ValuesIn(cases(Op::kAllGather)), name_of);

TEST_P(AllGather, GivesAllRanksAllParts) {
  run([&](const CommunicatorPtr& world) {
    for (const auto& each : counts()) {
      for (const bool aliases : {false, true}) {
        const auto passed = even(each) ? std::vector<std::int64_t>{} : each;
        const Guarded output(sum(each), c10::kLong);
        const at::Tensor own = contribution(world->rank(), each[world->rank()], c10::kLong);
        const at::Tensor part = PartLayout(each, ranks(), 0).of(output.tensor(), world->rank());
        if (aliases) part.copy_(own);
        const at::Tensor input = aliases ? part : own;
        does(world, checked_all_gather(*world, output.tensor(), input, passed));
        EXPECT_TRUE(at::equal(output.tensor(), all_contributions(each))) << at::IntArrayRef(each);
        EXPECT_TRUE(output.intact());
      }
    }
  });
}

class Gather : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, Gather, ::testing::ValuesIn(cases(Op::kGather)), name_of);

TEST_P(Gather, GivesRootAllParts) {
  run([&](const CommunicatorPtr& world) {
    const auto check = [&](const std::vector<std::int64_t>& counts, int root, bool aliases) {
      const auto passed = even(counts) ? std::vector<std::int64_t>{} : counts;
      const bool is_root = world->rank() == root;
      const Guarded memory(sum(counts), c10::kLong);
      const at::Tensor output = is_root ? memory.tensor() : at::Tensor();
      at::Tensor input = contribution(world->rank(), counts[world->rank()], c10::kLong);
      if (is_root && aliases) input = PartLayout(counts, ranks(), 0).of(output, root).copy_(input);
      does(world, checked_gather(*world, output, input, root, passed));
      EXPECT_TRUE(!is_root || at::equal(output, all_contributions(counts))) << at::IntArrayRef(counts);
      EXPECT_TRUE(memory.intact());
    };
    for (const auto& each : counts()) {
      for (const int root : roots()) check(each, root, (root + each[0]) % 2 == 0);
    }
  });
}

class Scatter : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, Scatter, ::testing::ValuesIn(cases(Op::kScatter)), name_of);

TEST_P(Scatter, GivesEachRankItsPartOfRoot) {
  run([&](const CommunicatorPtr& world) {
    const auto check = [&](const std::vector<std::int64_t>& counts, int root, bool aliases) {
      const auto passed = even(counts) ? std::vector<std::int64_t>{} : counts;
      const bool is_root = world->rank() == root;
      const at::Tensor whole = contribution(root, sum(counts), c10::kLong);
      const at::Tensor input = is_root ? whole.clone() : at::Tensor();
      const Guarded own(counts[world->rank()], c10::kLong);
      const PartLayout parts(counts, ranks(), 0);
      const at::Tensor output = is_root && aliases ? parts.of(input, root) : own.tensor();
      does(world, checked_scatter(*world, output, input, root, passed));
      EXPECT_TRUE(at::equal(output, parts.of(whole, world->rank()))) << at::IntArrayRef(counts);
      EXPECT_TRUE(!is_root || at::equal(input, whole)) << "wrote to the input";
      EXPECT_TRUE(own.intact());
    };
    for (const auto& each : counts()) {
      for (const int root : roots()) check(each, root, (root + each[0]) % 2 == 0);
    }
  });
}

class AllToAll : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, AllToAll, ::testing::ValuesIn(cases(Op::kAllToAll)), name_of);

TEST_P(AllToAll, TransposesParts) {
  run([&](const CommunicatorPtr& world) {
    const int own = world->rank();
    // `elements(from, to)` is the number of elements that go from one rank to another. The input of rank s is its
    // contribution, with its parts one after the other.
    const auto check = [&](const auto& elements, bool is_even) {
      std::vector<std::int64_t> from, to;
      std::vector<at::Tensor> expected;
      for (int peer = 0; peer < ranks(); ++peer) {
        from.push_back(elements(peer, own));
        to.push_back(elements(own, peer));
        std::vector<std::int64_t> theirs;
        for (int rank = 0; rank < ranks(); ++rank) theirs.push_back(elements(peer, rank));
        expected.push_back(PartLayout(theirs, ranks(), 0).of(contribution(peer, sum(theirs), c10::kLong), own));
      }
      const Guarded output(sum(from), c10::kLong);
      const at::Tensor input = contribution(own, sum(to), c10::kLong);
      if (is_even) from = to = {};
      if (!does(world, checked_all_to_all(*world, output.tensor(), input, from, to))) return;
      EXPECT_TRUE(at::equal(output.tensor(), at::concat(expected)));
      EXPECT_TRUE(output.intact());
    };
    for (const std::int64_t part : {0, 1, 2, 37, 10'007}) check([&](int, int) { return part; }, true);
    for (int seed = 0; seed < 3; ++seed) {
      check([&](int from, int to) { return std::int64_t{(from * 3 + to * 5 + seed) % 4}; }, false);
    }
    check([&](int from, int to) { return std::int64_t{from == 0 && to == ranks() - 1 ? 10'007 : 0}; }, false);
  });
}

class Barrier : public AlgorithmTest {};
INSTANTIATE_TEST_SUITE_P(, Barrier, ::testing::ValuesIn(cases(Op::kBarrier)), name_of);

TEST_P(Barrier, NoRankLeavesBeforeAllHaveArrived) {
  std::atomic<int> came{0};
  run([&](const CommunicatorPtr& world) {
    for (int round = 1; round <= 20; ++round) {
      ++came;
      does(world, {.call = {.op = Op::kBarrier}});
      EXPECT_GE(came.load(), round * ranks());
    }
  });
}

}  // namespace
}  // namespace phalanx::testing
