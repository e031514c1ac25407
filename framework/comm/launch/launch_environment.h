// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "framework/comm/launch/hydra.h"

namespace phalanx {

/// The rank that this process has in its job, as its launcher set it.
struct RankInfo {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;  // ranks on this host

  bool one_host() const { return local_size == size; }
};

/// The launcher of this process, and the address of the rendezvous of the ranks.
struct LaunchEnvironment {
  std::string launcher;  // "torchrun", "mpirun", "srun", "mpiexec" and so on, or "local" for Phalanx's own
  RankInfo rank_info;
  std::string rendezvous{};      // URL for rendezvous(); empty: the ranks meet through MPI
  std::string job{};             // unique for each job on its hosts, usable as a file name
  bool knows_local_rank = true;  // false if local_rank and local_size are unknown before the rendezvous
  bool mpi = false;              // MPI's launcher started these ranks, so MPI can connect them
};

/// Reads the environment variables of the known launchers: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT (torchrun and compatible launchers, including Phalanx's own); OMPI_COMM_WORLD_RANK, ... (Open MPI);
/// SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, ... (Slurm, inside a step of more than one task); PMI_RANK, PMI_SIZE,
/// MPI_LOCALRANKID, MPI_LOCALNRANKS (Hydra, the mpiexec of MPICH and Intel MPI); PMI_RANK, ... (others, whose ranks
/// meet at MASTER_ADDR and MASTER_PORT). Returns nullopt if no launcher started this process as a rank. Throws a
/// ConfigError that names the variable if one is missing, malformed or contradicts another, and throws ConfigError if
/// the variables say that this is one of several ranks but not how the ranks can meet.
///
/// Ranks of Open MPI and of Hydra meet in a file if they are on one host, otherwise through MPI. Ranks of Hydra meet at
/// MASTER_ADDR and MASTER_PORT instead if these are set, and then count as not started by MPI.
///
/// Ranks of Slurm on several nodes meet through MPI if PMIx started them (srun --mpi=pmix). Otherwise they meet at the
/// first node of the step (SLURM_STEP_NODELIST), at a port that follows from the numbers of job and step; MASTER_ADDR
/// and MASTER_PORT override the two.
std::optional<LaunchEnvironment> detect_launch_environment();

/// Does the same with any source of variables, which returns nullopt for a variable that is not set, and any
/// replacement for find_hydra_proxy().
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
using FindProxy = std::function<std::optional<HydraProxy>()>;
std::optional<LaunchEnvironment> detect_launch_environment(const Variables& variables,
                                                           const FindProxy& find_proxy = &find_hydra_proxy);

}  // namespace phalanx
