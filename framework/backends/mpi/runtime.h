// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/backends/mpi/api.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/store.h"

namespace phalanx::mpi::inline PHALANX_MPI_BUILD {

/// Makes MPI usable by every thread of this process, and checks that its world matches `rank_info`. If `rank_info` has
/// a single rank, the launcher's values are used instead. The first call initializes MPI, unless the host application
/// has done so, and blocks until all ranks have done the same. Throws ConfigError if this MPI cannot connect these
/// ranks: they were started without an MPI launcher, the rank or size differs, or MPI allows too few threads or tags.
///
/// Sets HOME if it is not set, because Open MPI does not start without it. If all ranks are on one host and the
/// environment does not choose a transport (OMPI_MCA_pml, OMPI_MCA_btl; I_MPI_FABRICS), chooses shared memory, because
/// looking for networks takes up to a second. Both change the environment, so no other thread may read it at the same
/// time.
///
/// If MPI was initialized here, the files of its shared memory are removed as soon as all ranks have mapped them, so
/// none remains however the ranks end, and exit() ends MPI. All ranks that exit with status 0 and without an error wait
/// for each other, up to `finalize_timeout`, and call MPI_Finalize. A rank that exits with another status gives the
/// others one second to do the same. In all other cases MPI is not finalized, since that could block forever. Open
/// MPI's mpirun then ends the job because of this rank; under another launcher MPI_Abort does.
///
/// With ulfm(), the other ranks go on instead: they learn that this one has ended. So that mpirun tells them, a rank
/// that exits with another status than 0 before the others ends by SIGKILL. Once a rank has ended, the others exit
/// together, but do not call MPI_Finalize.
void start(const RankInfo& rank_info, Seconds finalize_timeout);

/// Checks that the host application has started MPI in a way that start() would accept. Throws ConfigError otherwise.
void require_running();

/// Returns the rank of this process in a communicator, and its rank among the ranks of this host. Collective over the
/// communicator. Throws CommError.
RankInfo rank_info_of(MPI_Comm communicator);

/// Records that peers can no longer be relied on, so that MPI will not be finalized. Must be called for every CommError
/// except mismatches, timeouts and, with ulfm(), lost peers. Operations that timed out do not prevent Open MPI from
/// finalizing once all ranks exit.
void mark_unhealthy() noexcept;

/// Returns true if MPI may be called to clean up: it is running, no error has occurred, and no exception is
/// propagating.
bool healthy() noexcept;

/// Returns e.g. "Open MPI v5.0.6" or "MPICH 5.0.2", or an empty string if MPI is not running.
std::string version_if_running();

/// Returns the name and version from the text of MPI_Get_library_version, whose form differs between MPIs.
std::string short_version(const std::string& library_version);

/// Throws ConfigError unless `provided`, from MPI_Init_thread or MPI_Query_thread, is MPI_THREAD_MULTIPLE.
void require_threads(int provided);

/// Throws ConfigError unless messages may have all tags up to kMaxAnyTag. `highest` is the value of MPI_TAG_UB.
void require_tags(int highest);

}  // namespace phalanx::mpi::inline PHALANX_MPI_BUILD
