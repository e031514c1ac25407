// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/broadcast_text.h"

#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>

#include "framework/backends/mpi/api.h"
#include "framework/backends/mpi/error.h"
#include "framework/backends/mpi/runtime.h"
#include "framework/backends/mpi/vendor.h"
#include "framework/base/error.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kWhere = "exchanging the address of rank 0 through MPI";

// The memory of a broadcast, which MPI may still use after a timeout.
struct Pending {
  MPI_Comm comm = MPI_COMM_NULL;  // whose messages never match those of a host application
  MPI_Request request = MPI_REQUEST_NULL;
  int bytes = 0;
  std::string text{};
};

void complete_request(Pending& pending, Clock::time_point deadline) {
  for (int done = 0; true;) {
    check(MPI_Test(&pending.request, &done, MPI_STATUS_IGNORE), kWhere);
    if (done != 0) return;
    if (Clock::now() >= deadline) {
      throw CommError(CommError::Kind::kTimeout, std::string(kWhere) + ": not all ranks came in time");
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void broadcast(Pending& pending, Clock::time_point deadline) {
  check(MPI_Comm_idup(MPI_COMM_WORLD, &pending.comm, &pending.request), kWhere);
  complete_request(pending, deadline);
  check(MPI_Comm_set_errhandler(pending.comm, errors_return()), kWhere);
  pending.bytes = static_cast<int>(pending.text.size());
  check(MPI_Ibcast(&pending.bytes, 1, MPI_INT, 0, pending.comm, &pending.request), kWhere);
  complete_request(pending, deadline);
  pending.text.resize(static_cast<std::size_t>(pending.bytes));
  check(MPI_Ibcast(pending.text.data(), pending.bytes, MPI_BYTE, 0, pending.comm, &pending.request), kWhere);
  complete_request(pending, deadline);
  check(MPI_Comm_free(&pending.comm), kWhere);
}

}  // namespace

std::string broadcast_text(const RankInfo& rank_info, const std::string& text, Seconds timeout) {
  start(rank_info, timeout);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout);
  auto pending = std::make_unique<Pending>();
  pending->text = text;
  try {
    broadcast(*pending, deadline);
  } catch (...) {
    static_cast<void>(pending.release());  // MPI may still write to it
    mark_unhealthy();
    throw;
  }
  return std::move(pending->text);
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
