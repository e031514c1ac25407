// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/vendor.h"

#include <cstdlib>

#include "framework/base/environment.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

// MPICH and Intel MPI disagree on the number of MPI_ERRORS_RETURN. It is the handler that files have by default.
MPI_Errhandler errors_return() {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_File_get_errhandler(MPI_FILE_NULL, &handler);
  return handler;
}

// User-level failure mitigation is not a part of the standard.
bool process_failed(int) { return false; }

// Intel MPI looks for networks, even if all ranks are on one host. The variable means nothing to other MPIs.
void prepare_environment(const RankInfo& rank_info) {
  constexpr int kKeep = 0;
  if (rank_info.one_host()) ::setenv("I_MPI_FABRICS", "shm", kKeep);
}

bool launched_for_mpi() {
  return environment("PMI_RANK") || environment("PMI_FD") || environment("PMI_PORT") || environment("PMIX_RANK");
}

std::string how_to_start() {
  return "start the ranks with the mpiexec of this MPI, or under Slurm with `srun --mpi=pmi2` or `--mpi=pmix`, "
         "whichever this MPI was built for";
}

// MPICH has one for the ranks of a host. Intel MPI removes its own.
bool is_segment(const std::string& path) { return path.starts_with("/dev/shm/mpich_shm_"); }

int expected_segments(int local_ranks) { return local_ranks > 1 ? 1 : 0; }

// MPICH's mpiexec ends with status 0 if a rank leaves early with status 0, and Intel MPI's blames another rank.
bool launcher_notices_exit() { return false; }

// The standard has no query.
bool reads_memory_of_devices() noexcept { return false; }

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
