// SPDX-License-Identifier: Apache-2.0
// Uses MPI itself as the oracle: compares every collective, dtype and reduction that MPI has with its blocking call.
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "framework/backends/testing/ranks_under_mpirun.h"

namespace phalanx::mpi {
namespace {

struct Type {
  at::ScalarType dtype;
  MPI_Datatype mpi;
};
const Type kTypes[] = {{at::kByte, MPI_UINT8_T},  {at::kChar, MPI_INT8_T},  {at::kShort, MPI_INT16_T},
                       {at::kInt, MPI_INT32_T},   {at::kLong, MPI_INT64_T}, {at::kFloat, MPI_FLOAT},
                       {at::kDouble, MPI_DOUBLE}, {at::kBool, MPI_C_BOOL}};

struct Combination {
  Reduction::Kind kind;
  MPI_Op mpi;
};

// Returns the reductions of a dtype and the MPI operations that correspond to them.
std::vector<Combination> combinations(at::ScalarType dtype) {
  if (dtype == at::kBool) {
    return {{Reduction::kSum, MPI_LOR},    {Reduction::kProduct, MPI_LAND}, {Reduction::kMin, MPI_LAND},
            {Reduction::kMax, MPI_LOR},    {Reduction::kBitAnd, MPI_LAND},  {Reduction::kBitOr, MPI_LOR},
            {Reduction::kBitXor, MPI_LXOR}};
  }
  std::vector<Combination> all{{Reduction::kSum, MPI_SUM},
                               {Reduction::kMean, MPI_SUM},
                               {Reduction::kProduct, MPI_PROD},
                               {Reduction::kMin, MPI_MIN},
                               {Reduction::kMax, MPI_MAX}};
  if (c10::isFloatingType(dtype)) return all;
  all.insert(all.end(), {{Reduction::kBitAnd, MPI_BAND}, {Reduction::kBitOr, MPI_BOR}, {Reduction::kBitXor, MPI_BXOR}});
  return all;
}

void divide(const at::Tensor& sum, Reduction::Kind kind, int ranks) {
  if (kind != Reduction::kMean) return;
  sum.copy_(c10::isFloatingType(sum.scalar_type()) ? sum.div(ranks) : sum.div(ranks, "trunc"));
}

// Sums and products of floating-point numbers depend on the order; all other results are exact.
void expect_agreement(const at::Tensor& ours, const at::Tensor& oracle, Reduction::Kind kind = Reduction::kMax) {
  const bool rounded = kind == Reduction::kSum || kind == Reduction::kMean || kind == Reduction::kProduct;
  if (rounded && c10::isFloatingType(ours.scalar_type())) {
    EXPECT_TRUE(at::allclose(ours, oracle, 1e-5, 1e-5));
  } else {
    ASSERT_EQ(ours.nbytes(), oracle.nbytes());
    EXPECT_TRUE(ours.nbytes() == 0 || std::memcmp(ours.data_ptr(), oracle.data_ptr(), ours.nbytes()) == 0);
  }
}

class Oracle : public RanksUnderMpirun {
 protected:
  template <class Body>
  void for_each_type(const Body& body) {
    for (const auto& type : kTypes) {
      for (const std::int64_t elements : {0, 1, 7, 1000, 40'000}) {
        SCOPED_TRACE(::testing::Message() << elements << ' ' << type.dtype << " on rank " << rank_);
        body(type, elements);
      }
    }
  }
  template <class Body>
  void for_each_reduction(const Body& body) {
    for_each_type([&](const Type& type, std::int64_t elements) {
      for (const auto& combination : combinations(type.dtype)) {
        SCOPED_TRACE(to_string(combination.kind));
        body(type, elements, combination);
      }
    });
  }

  // Returns an input that differs by rank.
  at::Tensor input(const Type& type, std::int64_t elements) const {
    const auto numbers = at::arange(elements, at::kLong).mul(7).add(13 * rank_ + 1).remainder(31);
    if (type.dtype == at::kBool) return numbers.remainder(2).to(at::kBool);
    if (type.dtype == at::kByte) return numbers.to(at::kByte);
    if (c10::isFloatingType(type.dtype)) return numbers.to(type.dtype).sub(15).sin();
    return numbers.sub(15).to(type.dtype);
  }

  // Returns the counts of uneven parts, one of them empty.
  std::vector<std::int64_t> counts(std::int64_t elements) const {
    std::vector<std::int64_t> counts;
    for (int rank = 0; rank < size_; ++rank) counts.push_back(rank == 1 ? 0 : elements + 3 * rank);
    return counts;
  }
  static std::vector<int> ints(const std::vector<std::int64_t>& counts) { return {counts.begin(), counts.end()}; }
  static std::vector<int> begins(const std::vector<std::int64_t>& counts) {
    std::vector<int> begins(counts.size(), 0);
    std::partial_sum(counts.begin(), counts.end() - 1, begins.begin() + 1);
    return begins;
  }
  static std::int64_t total(const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  }

  CommunicatorPtr world_ = connect();
  int rank_ = world_->rank(), size_ = world_->size(), root_ = size_ / 2;
  MPI_Comm oracle_ = MPI_COMM_WORLD;
};

TEST_F(Oracle, Broadcast) {
  for_each_type([&](const Type& type, std::int64_t elements) {
    auto ours = input(type, elements), theirs = ours.clone();
    world_->broadcast(ours, root_).wait();
    MPI_Bcast(theirs.data_ptr(), static_cast<int>(elements), type.mpi, root_, oracle_);
    expect_agreement(ours, theirs);
  });
}

TEST_F(Oracle, Reduce) {
  for_each_reduction([&](const Type& type, std::int64_t elements, const Combination& combination) {
    auto ours = input(type, elements), theirs = ours.clone();
    world_->reduce(ours, combination.kind, root_).wait();
    MPI_Reduce(input(type, elements).data_ptr(), theirs.data_ptr(), static_cast<int>(elements), type.mpi,
               combination.mpi, root_, oracle_);
    if (rank_ == root_) divide(theirs, combination.kind, size_);
    expect_agreement(ours, theirs, combination.kind);
  });
}

TEST_F(Oracle, AllReduce) {
  for_each_reduction([&](const Type& type, std::int64_t elements, const Combination& combination) {
    auto ours = input(type, elements), theirs = ours.clone();
    world_->all_reduce(ours, combination.kind).wait();
    MPI_Allreduce(MPI_IN_PLACE, theirs.data_ptr(), static_cast<int>(elements), type.mpi, combination.mpi, oracle_);
    divide(theirs, combination.kind, size_);
    expect_agreement(ours, theirs, combination.kind);
  });
}

TEST_F(Oracle, ReduceScatterEven) {
  for_each_reduction([&](const Type& type, std::int64_t elements, const Combination& combination) {
    const auto whole = input(type, elements * size_);
    auto ours = at::zeros({elements}, type.dtype), theirs = at::zeros({elements}, type.dtype);
    world_->reduce_scatter(ours, whole, combination.kind).wait();
    MPI_Reduce_scatter_block(whole.data_ptr(), theirs.data_ptr(), static_cast<int>(elements), type.mpi, combination.mpi,
                             oracle_);
    divide(theirs, combination.kind, size_);
    expect_agreement(ours, theirs, combination.kind);
  });
}

TEST_F(Oracle, ReduceScatterUneven) {
  for_each_reduction([&](const Type& type, std::int64_t elements, const Combination& combination) {
    const auto parts = counts(elements);
    const auto whole = input(type, total(parts));
    auto ours = at::zeros({parts[rank_]}, type.dtype), theirs = at::zeros({parts[rank_]}, type.dtype);
    world_->reduce_scatter(ours, whole, combination.kind, parts).wait();
    MPI_Reduce_scatter(whole.data_ptr(), theirs.data_ptr(), ints(parts).data(), type.mpi, combination.mpi, oracle_);
    divide(theirs, combination.kind, size_);
    expect_agreement(ours, theirs, combination.kind);
  });
}

TEST_F(Oracle, AllGather) {
  for_each_type([&](const Type& type, std::int64_t elements) {
    const auto count = static_cast<int>(elements);
    auto part = input(type, elements);
    auto ours = at::zeros({elements * size_}, type.dtype), theirs = at::zeros_like(ours);
    world_->all_gather(ours, part).wait();
    MPI_Allgather(part.data_ptr(), count, type.mpi, theirs.data_ptr(), count, type.mpi, oracle_);
    expect_agreement(ours, theirs);

    const auto parts = counts(elements);
    part = input(type, parts[rank_]);
    ours = at::zeros({total(parts)}, type.dtype), theirs = at::zeros_like(ours);
    world_->all_gather(ours, part, parts).wait();
    MPI_Allgatherv(part.data_ptr(), static_cast<int>(part.numel()), type.mpi, theirs.data_ptr(), ints(parts).data(),
                   begins(parts).data(), type.mpi, oracle_);
    expect_agreement(ours, theirs);
  });
}

TEST_F(Oracle, Gather) {
  for_each_type([&](const Type& type, std::int64_t elements) {
    const auto count = static_cast<int>(elements);
    auto part = input(type, elements);
    auto ours = at::zeros({elements * size_}, type.dtype), theirs = at::zeros_like(ours);
    world_->gather(ours, part, root_).wait();
    MPI_Gather(part.data_ptr(), count, type.mpi, theirs.data_ptr(), count, type.mpi, root_, oracle_);
    expect_agreement(ours, theirs);

    const auto parts = counts(elements);
    part = input(type, parts[rank_]);
    ours = at::zeros({total(parts)}, type.dtype), theirs = at::zeros_like(ours);
    world_->gather(ours, part, root_, parts).wait();
    MPI_Gatherv(part.data_ptr(), static_cast<int>(part.numel()), type.mpi, theirs.data_ptr(), ints(parts).data(),
                begins(parts).data(), type.mpi, root_, oracle_);
    expect_agreement(ours, theirs);
  });
}

TEST_F(Oracle, Scatter) {
  for_each_type([&](const Type& type, std::int64_t elements) {
    const auto count = static_cast<int>(elements);
    auto whole = input(type, elements * size_);
    auto ours = at::zeros({elements}, type.dtype), theirs = at::zeros_like(ours);
    world_->scatter(ours, whole, root_).wait();
    MPI_Scatter(whole.data_ptr(), count, type.mpi, theirs.data_ptr(), count, type.mpi, root_, oracle_);
    expect_agreement(ours, theirs);

    const auto parts = counts(elements);
    whole = input(type, total(parts));
    ours = at::zeros({parts[rank_]}, type.dtype), theirs = at::zeros_like(ours);
    world_->scatter(ours, whole, root_, parts).wait();
    MPI_Scatterv(whole.data_ptr(), ints(parts).data(), begins(parts).data(), type.mpi, theirs.data_ptr(),
                 static_cast<int>(theirs.numel()), type.mpi, root_, oracle_);
    expect_agreement(ours, theirs);
  });
}

TEST_F(Oracle, AllToAllEven) {
  for_each_type([&](const Type& type, std::int64_t elements) {
    const auto count = static_cast<int>(elements);
    const auto outgoing = input(type, elements * size_);
    auto ours = at::zeros_like(outgoing), theirs = at::zeros_like(outgoing);
    world_->all_to_all(ours, outgoing).wait();
    MPI_Alltoall(outgoing.data_ptr(), count, type.mpi, theirs.data_ptr(), count, type.mpi, oracle_);
    expect_agreement(ours, theirs);
  });
}

// Rank r sends elements + r + 2 s to rank s, and nothing to rank 1.
TEST_F(Oracle, AllToAllUneven) {
  for_each_type([&](const Type& type, std::int64_t elements) {
    std::vector<std::int64_t> sent, received;
    for (int peer = 0; peer < size_; ++peer) {
      sent.push_back(peer == 1 ? 0 : elements + rank_ + 2 * peer);
      received.push_back(rank_ == 1 ? 0 : elements + peer + 2 * rank_);
    }
    const auto outgoing = input(type, total(sent));
    auto ours = at::zeros({total(received)}, type.dtype), theirs = at::zeros_like(ours);
    world_->all_to_all(ours, outgoing, received, sent).wait();
    MPI_Alltoallv(outgoing.data_ptr(), ints(sent).data(), begins(sent).data(), type.mpi, theirs.data_ptr(),
                  ints(received).data(), begins(received).data(), type.mpi, oracle_);
    expect_agreement(ours, theirs);
  });
}

TEST_F(Oracle, SendAndRecv) {
  const int next = (rank_ + 1) % size_, previous = (rank_ + size_ - 1) % size_;
  for_each_type([&](const Type& type, std::int64_t elements) {
    const auto outgoing = input(type, elements), theirs = outgoing.clone();
    auto ours = at::zeros_like(outgoing);
    Work sent = world_->send(outgoing, next);
    world_->recv(ours, previous).wait();
    sent.wait();
    MPI_Sendrecv_replace(theirs.data_ptr(), static_cast<int>(elements), type.mpi, next, 0, previous, 0, oracle_,
                         MPI_STATUS_IGNORE);
    expect_agreement(ours, theirs);
  });
}

}  // namespace
}  // namespace phalanx::mpi
