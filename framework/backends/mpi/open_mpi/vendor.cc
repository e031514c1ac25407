// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/mpi/vendor.h"

// Must come after mpi.h, whose declarations it uses.
#include <mpi-ext.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "framework/base/environment.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

void load() {}  // the program is linked with it

bool loaded() noexcept { return true; }

MPI_Errhandler errors_return() { return MPI_ERRORS_RETURN; }

bool process_failed([[maybe_unused]] int error_class) {
#ifdef MPIX_ERR_PROC_FAILED  // an Open MPI with user-level failure mitigation
  return error_class == MPIX_ERR_PROC_FAILED || error_class == MPIX_ERR_PROC_FAILED_PENDING ||
         error_class == MPIX_ERR_REVOKED || error_class == MPI_ERR_PROC_ABORTED;
#else
  return false;
#endif
}

void prepare_environment(const RankInfo& rank_info) {
  constexpr int kKeep = 0;
  const passwd* user = ::getpwuid(::geteuid());
  ::setenv("HOME", user != nullptr && user->pw_dir != nullptr ? user->pw_dir : "/tmp", kKeep);
  if (!rank_info.one_host() || environment("OMPI_MCA_pml") || environment("OMPI_MCA_btl")) return;
  ::setenv("OMPI_MCA_pml", "ob1", kKeep);
  // tcp is for hosts without room in /dev/shm. A single rank needs neither, and without a launcher its segment would
  // never be removed.
  ::setenv("OMPI_MCA_btl", rank_info.size == 1 ? "self" : "self,sm,tcp", kKeep);
}

// Open MPI 4 asks Slurm itself.
bool launched_for_mpi() {
  return environment("PMIX_NAMESPACE") || environment("PMI_RANK") || environment("PMI_FD") ||
         environment("SLURM_STEP_ID");
}

std::string how_to_start() { return "start the ranks with mpirun, or under Slurm with `srun --mpi=pmix`"; }

bool is_segment(const std::string& path) { return path.find("/sm_segment.") != path.npos; }

int expected_segments(int local_ranks) { return local_ranks; }

bool launcher_notices_exit() { return environment("OMPI_COMM_WORLD_SIZE").has_value(); }

bool reads_memory_of_devices() noexcept {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
