// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/backends/mpi/api.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// The functions of user-level failure mitigation (ULFM), an extension of MPI with which ranks go on after others have
/// ended. Those that return an int return MPI's error code. Thread-safe.
struct Ulfm {
  /// Ends all operations of a communicator on all of its ranks, pending and future ones, with an error for which
  /// process_failed() is true. Local.
  int (*revoke)(MPI_Comm comm);

  /// Begins an agreement of all ranks of a communicator that have not ended. The request is complete when each of them
  /// has begun it, also if the communicator has been revoked. `flag` must live until then.
  int (*begin_agreement)(MPI_Comm comm, int* flag, MPI_Request* request);

  /// Creates a communicator of the ranks that have not ended, in their order, also if the communicator has been
  /// revoked. Collective among them, and blocks without a timeout. All ranks that get one get the same.
  int (*create_of_survivors)(MPI_Comm comm, MPI_Comm* survivors);

  /// Returns true if this rank knows that a communicator has been revoked. Local.
  bool (*is_revoked)(MPI_Comm comm);

  /// Returns the ranks of a communicator that MPI knows to have ended, ascending.
  std::vector<int> (*ended_ranks)(MPI_Comm comm);
};

/// Returns ULFM's functions, or null if ranks cannot go on: this MPI does not have it (Open MPI does, from version 5
/// on), or its launcher has not switched it on. The same on all ranks. MPI must run.
const Ulfm* ulfm() noexcept;

/// Returns why ulfm() is null, and how to start the ranks so that it is not.
std::string why_no_ulfm();

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
