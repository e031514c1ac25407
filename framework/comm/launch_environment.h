// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace phalanx {

/// Which rank of a job this process is, as its launcher told it.
struct RankInfo {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;  // ranks on this host

  bool one_host() const { return local_size == size; }
};

/// What started this process, and where the ranks can meet.
struct LaunchEnvironment {
  std::string launcher;  // "torchrun", "mpirun", "srun", "mpiexec" and so on, or "local" for Phalanx's own
  RankInfo rank_info;
  std::string rendezvous;   // URL for rendezvous(); empty where only MPI can connect the ranks
  std::string job;          // unique per job on its hosts, fit for a file name
  bool tells_local = true;  // false: local_rank and local_size are unknown until the ranks have met
};

/// Reads the environment variables of the known launchers: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT (torchrun and whatever follows it, Phalanx's own launcher too); OMPI_COMM_WORLD_RANK, ... (Open MPI);
/// SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID, ... (Slurm, inside a step of more than one task); PMI_RANK, PMI_SIZE,
/// ... (MPICH, Intel MPI and others, whose ranks meet at MASTER_ADDR and MASTER_PORT). nullopt: nobody launched this
/// process as a rank. Throws ConfigError naming the variable when one is missing, malformed or contradicts another, and
/// when a launcher's variables say that this is one of several ranks but not how they could meet.
std::optional<LaunchEnvironment> detect_launch_environment();

/// The same over any source of variables; it returns nullopt for one that is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<LaunchEnvironment> detect_launch_environment(const Variables& variables);

}  // namespace phalanx
