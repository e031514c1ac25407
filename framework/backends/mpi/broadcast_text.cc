// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/broadcast_text.h"

#include <mpi.h>

#include <chrono>
#include <thread>

#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/base/error.h"

namespace phalanx::mpi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kWhere = "exchanging the address of rank 0 through MPI";

void complete_request(MPI_Request request, Clock::time_point deadline) {
  for (int done = 0; true;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), kWhere);
    if (done != 0) return;
    if (Clock::now() >= deadline) {
      throw CommError(CommError::Kind::kTimeout, std::string(kWhere) + ": not all ranks came in time");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace

std::string broadcast_text(const RankInfo& rank_info, const std::string& text, Seconds timeout) {
  start(rank_info, timeout);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout);
  // Messages of a communicator of its own never match those of a host application.
  MPI_Comm own = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &own), kWhere);
  MPI_Request request = MPI_REQUEST_NULL;
  auto bytes = static_cast<int>(text.size());
  check(MPI_Ibcast(&bytes, 1, MPI_INT, 0, own, &request), kWhere);
  complete_request(request, deadline);
  std::string received = text;
  received.resize(static_cast<std::size_t>(bytes));
  check(MPI_Ibcast(received.data(), bytes, MPI_BYTE, 0, own, &request), kWhere);
  complete_request(request, deadline);
  MPI_Comm_free(&own);
  return received;
}

}  // namespace phalanx::mpi
