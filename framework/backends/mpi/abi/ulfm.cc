// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/ulfm.h"

#include "framework/backends/mpi/runtime.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

// ULFM is not a part of the standard ABI.
const Ulfm* ulfm() noexcept { return nullptr; }

std::string why_no_ulfm() {
  return version_if_running() +
         " has no ULFM; use Open MPI, from version 5 on, and start the ranks with `mpirun --with-ft ulfm`";
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
