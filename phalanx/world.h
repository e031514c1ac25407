// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "framework/base/error.h"
#include "framework/comm/communicator.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

struct InitOptions {
  /// The backend that connects the ranks: shm (processes of one host), gloo (TCP), mpi, hybrid (one within hosts and
  /// another between them), nccl (CUDA devices), or auto, which chooses by the place of the ranks.
  std::string backend = "auto";

  /// The place where the ranks meet:
  ///
  ///   ""                 as the variables of the launcher say: torchrun, Open MPI's mpirun, the mpiexec of MPICH and
  ///                      Intel MPI, Slurm's srun, and others that set RANK and WORLD_SIZE; without a launcher, this
  ///                      process is the only rank
  ///   "env://"           the same, but RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT must be set
  ///   "tcp://host:port"  rank 0 listens there; needs `rank` and `world_size`
  ///   "file:///path"     a file that all ranks see and that does not exist yet; needs `rank` and `world_size`
  std::string init_method{};
  std::optional<int> rank{};
  std::optional<int> world_size{};

  /// The network interface for connections to other hosts, such as eth0; empty: the interface of the route to rank 0.
  /// Open MPI and NCCL get it as variables of this process, so no other thread may read the environment during init().
  std::string interface{};

  /// Limit for connecting and for each operation. A rank that waits longer for another one throws CommError.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);

  /// The MPI_Comm (a pointer to it) whose ranks form the world, in a program that has called MPI_Init_thread. It is
  /// duplicated, so the program's messages and ours do not meet. mpi.h has world_over_mpi(), which sets it.
  const void* mpi_communicator = nullptr;
  bool mpi_standard_abi = false;  // it is of the standard ABI of MPI 5.0; otherwise it is one of Open MPI
};

/// The ranks that train together, as seen by one of them. There is no current world: everything that communicates is
/// given one, and a program may have several.
///
/// Movable. When the world and everything that was made from it have been destroyed, this rank leaves the group without
/// waiting for others, and ranks that still wait for it get CommError::kPeerLost.
class World {
 public:
  /// Makes a world of the ranks of a communicator, such as a group of another world. `device` is where this rank
  /// computes. Collective.
  explicit World(CommunicatorPtr communicator, c10::Device device = c10::kCPU);

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }

  /// Return the number of this rank among the ranks of its host, and the number of these ranks.
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }

  /// Return the number of this rank's host, in the order of the hosts' lowest ranks, and the number of hosts.
  int host() const { return host_; }
  int hosts() const { return hosts_; }

  /// Returns the device on which this rank computes: cpu, or with backend nccl the CUDA device of its local rank.
  c10::Device device() const { return device_; }

  /// Returns the communicator of all ranks, which has the collectives, send and recv.
  Communicator& communicator() const { return *communicator_; }
  const CommunicatorPtr& shared_communicator() const { return communicator_; }

  /// Returns the group of the ranks that pass the same color, ordered by key, then by rank; null for a negative color.
  /// Collective.
  CommunicatorPtr group(int color, int key = 0) const { return communicator_->split(color, key); }

  /// Returns the ranks as a grid with named axes: world.mesh({{Axis::kData, 2}, {Axis::kTensor, 4}}). An axis that is
  /// not named has size 1. Collective. Throws std::invalid_argument unless the product is the number of ranks.
  Mesh mesh(std::initializer_list<std::pair<Axis, std::int64_t>> axes) const;

  /// Blocks until all ranks have called it.
  void barrier() const { communicator_->barrier().wait(); }

 private:
  CommunicatorPtr communicator_;
  c10::Device device_;
  int local_rank_ = 0, local_size_ = 1, host_ = 0, hosts_ = 1;
};

/// Connects this process to the other ranks. Collective. Starts no other process, reads no file and no command line,
/// and changes neither signal handlers nor LibTorch's settings; backend mpi starts MPI unless the program has.
///
/// Throws ConfigError if the options or the variables of the launcher contradict each other or name a backend that
/// cannot connect these ranks, and CommError if the others do not come in time.
World init(const InitOptions& options = {});

}  // namespace phalanx
