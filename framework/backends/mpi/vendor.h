// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/backends/mpi/api.h"
#include "framework/comm/launch/launch_environment.h"

// The differences between Open MPI (open_mpi/vendor.cc) and the MPIs with the standard ABI (abi/vendor.cc).
namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// Makes MPI's functions callable, once. Throws ConfigError if there is no library of MPI for this process.
void load();

/// Returns true if MPI's functions may be called.
bool loaded() noexcept;

/// Returns the error handler with which functions return errors, MPI_ERRORS_RETURN. MPI must run.
MPI_Errhandler errors_return();

/// Returns true if this class of errors says that a process has failed.
bool process_failed(int error_class);

/// Sets variables that MPI reads when it starts, except those that are set: the transport if all ranks are on one host,
/// and what MPI cannot start without.
void prepare_environment(const RankInfo& rank_info);

/// Returns true if a launcher may have told MPI about other ranks.
bool launched_for_mpi();

/// Returns how to start ranks so that MPI knows of them, for the end of an error.
std::string how_to_start();

/// Returns true if the path is that of a file of MPI's shared memory.
bool is_segment(const std::string& path);

/// Returns the number of such files that each of `local_ranks` ranks of a host has mapped once MPI has started.
int expected_segments(int local_ranks);

/// Returns true if the launcher ends the job when a rank exits without MPI_Finalize, so that MPI_Abort is not needed.
bool launcher_notices_exit();

/// Returns true if MPI reports that it reads and writes the memory of CUDA devices itself, as an Open MPI with CUDA
/// support does. MPI must run.
bool reads_memory_of_devices() noexcept;

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
