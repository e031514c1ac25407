// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx::mpi {

/// Makes MPI usable by every thread of this process and checks that its world is that of `rank_info` (one of a single
/// rank yields to what the launcher says). The first call initialises MPI, unless the host application did; blocks
/// until all ranks have done so. Errors: ConfigError when this MPI cannot connect these ranks (started without an MPI
/// launcher, another rank or size, too few threads or tags allowed).
///
/// Where the environment has none, sets HOME, without which Open MPI stops. Where all ranks are on one host and the
/// environment does not choose a transport (OMPI_MCA_pml, OMPI_MCA_btl), chooses shared memory: looking for networks
/// takes Open MPI a second. Both change the environment, so no other thread may read it meanwhile.
///
/// When MPI was initialised here, the files of Open MPI's shared memory are removed as soon as all ranks have mapped
/// them, so none is left however the ranks end; and exit() ends MPI. All ranks that exit with status 0 and without an
/// error wait for each other, up to `farewell`, and call MPI_Finalize. One that exits with another status gives the
/// others one second to do so too. In all other cases MPI is not finalised, which could block for ever: mpirun then
/// ends the job because of this rank; under another launcher MPI_Abort does.
void start(const RankInfo& rank_info, Seconds farewell);

/// From now on peers cannot be counted on: MPI will not be finalised. Called for every CommError but mismatches and
/// timeouts: operations that timed out do not keep Open MPI from its end once all ranks have come to theirs.
void give_up() noexcept;

/// Whether MPI may be called to clean up: it runs, nothing has failed and no exception is on its way.
bool healthy() noexcept;

/// Whether MPI reads and writes memory of CUDA devices itself, as far as it says so: an Open MPI that was built for it.
/// After start().
bool reads_device_memory() noexcept;

/// Throws ConfigError unless `provided`, of MPI_Init_thread or MPI_Query_thread, is MPI_THREAD_MULTIPLE.
void require_threads(int provided);

/// Throws ConfigError unless messages may have all tags up to kMaxAnyTag. `highest`: of MPI_TAG_UB.
void require_tags(int highest);

}  // namespace phalanx::mpi
