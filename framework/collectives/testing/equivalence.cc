// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/testing/equivalence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "framework/comm/operations/part_layout.h"

namespace phalanx::testing {
namespace {

const at::ScalarType kDtypes[] = {at::kByte, at::kChar,     at::kShort, at::kInt,    at::kLong,
                                  at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kBool};
const Reduction kReductions[] = {Reduction::kSum, Reduction::kMean,   Reduction::kProduct, Reduction::kMin,
                                 Reduction::kMax, Reduction::kBitAnd, Reduction::kBitOr,   Reduction::kBitXor};
// Zero elements, fewer than ranks, a size that leaders carry, a size that is sliced, and several pieces.
const std::int64_t kElements[] = {0, 1, 3, 1000, 5001, 600'001};

// Returns small integers: reductions of them are exact in every dtype, in any order.
at::Tensor pattern(int rank, std::int64_t elements, at::ScalarType dtype) {
  return ((at::arange(elements, at::kLong) * 7 + rank * 13) % 5 - 2).to(dtype);
}

at::Tensor unset(std::int64_t elements, at::ScalarType dtype) { return at::full({elements}, 1, dtype); }

// Returns counts of which some are zero and one is large.
std::vector<std::int64_t> uneven(int ranks, std::int64_t elements) {
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) counts.push_back(rank % 3 == 1 ? 0 : elements / (rank + 1));
  return counts;
}

void expect_all_reduce(Communicator& flat, Communicator& tested, std::int64_t elements, at::ScalarType dtype,
                       const Reduction& op) {
  const at::Tensor want = pattern(flat.rank(), elements, dtype);
  const at::Tensor got = want.clone();
  flat.all_reduce(want, op).wait();
  tested.all_reduce(got, op).wait();
  EXPECT_TRUE(at::equal(got, want)) << "all_reduce " << op.name() << " of " << elements << ' ' << dtype;
}

void expect_broadcast(Communicator& flat, Communicator& tested, std::int64_t elements, int root) {
  const at::Tensor want = pattern(root, elements, at::kFloat);
  const at::Tensor got = flat.rank() == root ? want.clone() : unset(elements, at::kFloat);
  tested.broadcast(got, root).wait();
  EXPECT_TRUE(at::equal(got, want)) << "broadcast of " << elements << " from " << root;
}

void expect_all_gather(Communicator& flat, Communicator& tested, const std::vector<std::int64_t>& counts,
                       at::ScalarType dtype) {
  const PartLayout parts(counts, flat.size(), 0);
  const at::Tensor input = pattern(flat.rank(), parts.count(flat.rank()), dtype);
  const at::Tensor want = unset(parts.total(), dtype);
  const at::Tensor got = want.clone();
  const at::Tensor in_place = want.clone();
  parts.of(in_place, flat.rank()).copy_(input);
  flat.all_gather(want, input, counts).wait();
  tested.all_gather(got, input, counts).wait();
  tested.all_gather(in_place, parts.of(in_place, flat.rank()), counts).wait();
  EXPECT_TRUE(at::equal(got, want)) << "all_gather of " << parts.total() << ' ' << dtype;
  EXPECT_TRUE(at::equal(in_place, want)) << "all_gather in place of " << parts.total() << ' ' << dtype;
}

void expect_reduce_scatter(Communicator& flat, Communicator& tested, const std::vector<std::int64_t>& counts,
                           at::ScalarType dtype, const Reduction& op) {
  const PartLayout parts(counts, flat.size(), 0);
  const at::Tensor input = pattern(flat.rank(), parts.total(), dtype);
  const at::Tensor in_place = input.clone();
  const at::Tensor want = unset(parts.count(flat.rank()), dtype);
  const at::Tensor got = want.clone();
  flat.reduce_scatter(want, input, op, counts).wait();
  tested.reduce_scatter(got, input, op, counts).wait();
  tested.reduce_scatter(parts.of(in_place, flat.rank()), in_place, op, counts).wait();
  EXPECT_TRUE(at::equal(got, want)) << "reduce_scatter " << op.name() << " of " << parts.total() << ' ' << dtype;
  const at::Tensor whole = pattern(flat.rank(), parts.total(), dtype);
  parts.of(whole, flat.rank()).copy_(want);
  EXPECT_TRUE(at::equal(in_place, whole)) << "reduce_scatter in place of " << parts.total() << ' ' << dtype;
}

}  // namespace

void expect_same_collectives(Communicator& flat, Communicator& tested) {
  const int ranks = flat.size();
  ASSERT_EQ(tested.size(), ranks);
  ASSERT_EQ(tested.rank(), flat.rank());
  for (const auto elements : kElements) {
    expect_all_reduce(flat, tested, elements, at::kFloat, Reduction::kSum);
    for (int root = 0; root < ranks; ++root) expect_broadcast(flat, tested, elements, root);
    for (const auto& counts : {std::vector<std::int64_t>(ranks, elements / ranks), uneven(ranks, elements)}) {
      expect_all_gather(flat, tested, counts, at::kFloat);
      expect_reduce_scatter(flat, tested, counts, at::kFloat, Reduction::kMean);
    }
  }
  for (const auto dtype : kDtypes) {
    expect_all_gather(flat, tested, uneven(ranks, 10'007), dtype);
    for (const auto& op : kReductions) {
      if (!op.takes(dtype)) continue;
      expect_all_reduce(flat, tested, 10'007, dtype, op);
      expect_reduce_scatter(flat, tested, uneven(ranks, 1001), dtype, op);
    }
  }
}

}  // namespace phalanx::testing
