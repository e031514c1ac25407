// SPDX-License-Identifier: Apache-2.0
// More elements than one MPI call counts. The limit is INT_MAX, but kMost here.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/concat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "framework/backends/testing/ranks_under_mpirun.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx::mpi {
namespace {

constexpr std::int64_t kMost = 10;

// Parameterized by the number of elements.
class LongOperations : public RanksUnderMpirun, public ::testing::WithParamInterface<std::int64_t> {
 protected:
  CommunicatorPtr world_ = connect({.max_elements = kMost});
  int rank_ = world_->rank(), size_ = world_->size();
  std::int64_t elements_ = GetParam();

  // Returns the contribution of rank `of`.
  at::Tensor run_of(int of) const { return at::arange(elements_, at::kLong).add(1000 * of); }
  std::vector<std::int64_t> uneven() const {
    std::vector<std::int64_t> counts(size_);
    for (int rank = 0; rank < size_; ++rank) counts[rank] = rank == 1 ? 0 : elements_ + 3 * rank;
    return counts;
  }
  // Returns the uneven parts as one run.
  at::Tensor ramp() const {
    const auto counts = uneven();
    return at::arange(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), at::kLong);
  }
  at::Tensor part_of(const at::Tensor& whole, int of) const { return PartLayout(uneven(), size_, 0).of(whole, of); }
};
INSTANTIATE_TEST_SUITE_P(Elements, LongOperations, ::testing::Values(0, kMost - 1, kMost, kMost + 1, 3 * kMost + 5));

TEST_P(LongOperations, Reductions) {
  auto expected = run_of(0).mul(size_).add(1000 * (size_ * (size_ - 1) / 2));
  auto tensor = run_of(rank_);
  world_->all_reduce(tensor, Reduction::kSum).wait();
  EXPECT_TRUE(tensor.equal(expected));
  tensor = run_of(rank_);
  world_->reduce(tensor, Reduction::kSum, size_ - 1).wait();
  EXPECT_TRUE(tensor.equal(rank_ == size_ - 1 ? expected : run_of(rank_)));
  const auto whole = ramp();
  auto part = at::empty({uneven()[rank_]}, at::kLong);
  world_->reduce_scatter(part, whole, Reduction::kSum, uneven()).wait();
  EXPECT_TRUE(part.equal(part_of(whole, rank_).mul(size_)));
}

TEST_P(LongOperations, Broadcast) {
  auto tensor = run_of(rank_);
  world_->broadcast(tensor, size_ - 1).wait();
  EXPECT_TRUE(tensor.equal(run_of(size_ - 1)));
}

TEST_P(LongOperations, GatherAndScatter) {
  const int root = size_ / 2;
  const auto whole = ramp();
  auto all = at::zeros_like(whole);
  world_->all_gather(all, part_of(whole, rank_).clone(), uneven()).wait();
  EXPECT_TRUE(all.equal(whole));
  all = rank_ == root ? at::zeros_like(whole) : at::Tensor();
  world_->gather(all, part_of(whole, rank_).clone(), root, uneven()).wait();
  if (rank_ == root) {
    EXPECT_TRUE(all.equal(whole));
  }
  auto part = at::zeros({uneven()[rank_]}, at::kLong);
  world_->scatter(part, all, root, uneven()).wait();
  EXPECT_TRUE(part.equal(part_of(whole, rank_)));
}

// Rank r sends to rank s the elements 100 r + s, each r * s * kMost + elements_ times: some ranks have long runs,
// others not.
TEST_P(LongOperations, AllToAll) {
  std::vector<at::Tensor> outgoing, incoming;
  std::vector<std::int64_t> counts;
  for (int peer = 0; peer < size_; ++peer) {
    counts.push_back(peer * rank_ * kMost + elements_);
    outgoing.push_back(at::full({counts.back()}, 100 * rank_ + peer, at::kLong));
    incoming.push_back(at::full({counts.back()}, 100 * peer + rank_, at::kLong));
  }
  const auto expected = at::concat(incoming);
  auto output = at::zeros_like(expected);
  world_->all_to_all(output, at::concat(outgoing), counts, counts).wait();
  EXPECT_TRUE(output.equal(expected));
  for (auto* parts : {&outgoing, &incoming}) {
    for (auto& part : *parts) part = part.narrow(0, 0, elements_);
  }
  output = at::zeros({elements_ * size_}, at::kLong);
  world_->all_to_all(output, at::concat(outgoing)).wait();
  EXPECT_TRUE(output.equal(at::concat(incoming)));
}

TEST_P(LongOperations, Messages) {
  const int next = (rank_ + 1) % size_, previous = (rank_ + size_ - 1) % size_;
  auto received = at::zeros({elements_}, at::kLong);
  Work sent = world_->send(run_of(rank_), next, 0);
  world_->recv(received, previous, 0).wait();
  sent.wait();
  EXPECT_TRUE(received.equal(run_of(previous)));
}

}  // namespace
}  // namespace phalanx::mpi
