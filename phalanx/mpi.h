// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <utility>

#include "phalanx/world.h"

#if !defined(OPEN_MPI) && !defined(MPI_ABI_VERSION)
#error "Phalanx uses Open MPI, or MPIs with the standard ABI of MPI 5.0: compile with mpicxx_abi or mpi_abi.h"
#endif

namespace phalanx {

/// Returns a world of the ranks of `communicator`, which the program has made with its own MPI. MPI must have been
/// initialized with MPI_THREAD_MULTIPLE, and be the Open MPI for which Phalanx was built or, in a program that is
/// compiled for the standard ABI of MPI 5.0 (MPICH's mpicxx_abi), any MPI with that ABI. The world uses a duplicate,
/// which is freed together with it, so the world must be destroyed before MPI_Finalize. Only the timeout of `options`
/// is used. Collective over the communicator.
inline World world_over_mpi(MPI_Comm communicator, InitOptions options = {}) {
  options.backend = "mpi";
  options.mpi_communicator = &communicator;
#if !defined(OPEN_MPI)
  options.mpi_standard_abi = true;
#endif
  return init(options);
}

}  // namespace phalanx
