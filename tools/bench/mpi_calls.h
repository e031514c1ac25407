// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "tools/bench/timed.h"

/// The calls of MPI that are measured, on MPI_COMM_WORLD. The same for every MPI, whose own mpi.h is included. Includes
/// nothing of Phalanx, as timed.h.
namespace phalanx::bench {

/// The float32 buffers of a case on this rank; struct Sizes (operation.h) has their sizes.
struct MpiBuffers {
  void* whole = nullptr;
  void* other = nullptr;  // a part; for all_to_all as large as `whole`
  int count = 0;          // elements of `whole`
  int part = 0;           // elements of a part
};

inline void check_mpi(int status) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error("MPI: " + std::string(text));
}

inline int mpi_rank() {
  int rank = 0;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  return rank;
}

inline int mpi_size() {
  int size = 0;
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size));
  return size;
}

/// A blocking operation. Reductions sum, and the root is rank 0. Returns MPI's status.
using MpiCall = int (*)(const MpiBuffers&);

/// Throws std::invalid_argument if `op` is not a collective.
inline MpiCall find_mpi_call(const std::string& op) {
  constexpr int kRootRank = 0;
  if (op == "all_reduce") {
    return [](const MpiBuffers& b) {
      return MPI_Allreduce(MPI_IN_PLACE, b.whole, b.count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
  }
  if (op == "broadcast") {
    return [](const MpiBuffers& b) { return MPI_Bcast(b.whole, b.count, MPI_FLOAT, kRootRank, MPI_COMM_WORLD); };
  }
  if (op == "reduce") {
    static const bool root = mpi_rank() == kRootRank;
    return [](const MpiBuffers& b) {
      return MPI_Reduce(root ? MPI_IN_PLACE : b.whole, b.whole, b.count, MPI_FLOAT, MPI_SUM, kRootRank, MPI_COMM_WORLD);
    };
  }
  if (op == "reduce_scatter") {
    return [](const MpiBuffers& b) {
      return MPI_Reduce_scatter_block(b.whole, b.other, b.part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
  }
  if (op == "all_gather") {
    return [](const MpiBuffers& b) {
      return MPI_Allgather(b.other, b.part, MPI_FLOAT, b.whole, b.part, MPI_FLOAT, MPI_COMM_WORLD);
    };
  }
  if (op == "gather") {
    return [](const MpiBuffers& b) {
      return MPI_Gather(b.other, b.part, MPI_FLOAT, b.whole, b.part, MPI_FLOAT, kRootRank, MPI_COMM_WORLD);
    };
  }
  if (op == "scatter") {
    return [](const MpiBuffers& b) {
      return MPI_Scatter(b.whole, b.part, MPI_FLOAT, b.other, b.part, MPI_FLOAT, kRootRank, MPI_COMM_WORLD);
    };
  }
  if (op == "all_to_all") {
    return [](const MpiBuffers& b) {
      return MPI_Alltoall(b.whole, b.part, MPI_FLOAT, b.other, b.part, MPI_FLOAT, MPI_COMM_WORLD);
    };
  }
  if (op == "barrier") {
    return [](const MpiBuffers&) { return MPI_Barrier(MPI_COMM_WORLD); };
  }
  throw std::invalid_argument("not a collective: " + op);
}

/// Sends to the partner and receives from it. Ranks 2k and 2k + 1 are partners; if the number of ranks is odd, the last
/// one has no partner.
inline void mpi_round_trip(const MpiBuffers& b, int rank, int size) {
  const int partner = rank ^ 1;
  if (partner >= size) return;
  const auto send = [&] { check_mpi(MPI_Send(b.whole, b.count, MPI_FLOAT, partner, 0, MPI_COMM_WORLD)); };
  if (rank < partner) send();
  check_mpi(MPI_Recv(b.whole, b.count, MPI_FLOAT, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
  if (rank > partner) send();
}

/// Returns a function that measures `op`, an operation of operation.h, on these buffers.
inline Measure measure_mpi(const std::string& op, const MpiBuffers& b) {
  if (op == "send_recv") {
    return timed_round_trips([b, rank = mpi_rank(), size = mpi_size()] { mpi_round_trip(b, rank, size); });
  }
  if (op == "launch") {
    const auto request = std::make_shared<MPI_Request>(MPI_REQUEST_NULL);
    const auto launch = [b, request] {
      check_mpi(MPI_Iallreduce(MPI_IN_PLACE, b.whole, b.count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, request.get()));
    };
    return timed_launches(launch, [request] { check_mpi(MPI_Wait(request.get(), MPI_STATUS_IGNORE)); });
  }
  return timed([b, call = find_mpi_call(op)] { check_mpi(call(b)); });
}

}  // namespace phalanx::bench
