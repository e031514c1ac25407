// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The ranks, hosts and software versions of a measurement. The measurement applies only to the same topology. A value
/// type.
struct Topology {
  struct Host {
    int ranks = 0;      // on this host
    int cores = 0;      // available to this process
    std::string cpu{};  // model name, as Linux reports it

    bool operator==(const Host&) const = default;
  };

  std::vector<Host> hosts{};  // in the order of their first ranks
  std::string device = "cpu";
  std::string backend{};
  std::string phalanx{}, libtorch{};  // versions
  std::string mpi{};                  // version; empty if the backend does not use MPI
  std::string levels{};               // by which collectives divide the ranks, such as "host, numa"; empty: none

  bool operator==(const Topology&) const = default;

  int ranks() const;
};

/// Returns the topology of the world's ranks, the same on all of them. Hosts differ if their host_key() does.
/// Collective. `mpi` is the version of MPI if `backend` uses it.
Topology detect_topology(Communicator& world, const std::string& backend, const std::string& mpi);

/// Returns the differences, for messages: "cores 8, here 2". Empty if the topologies are equal.
std::vector<std::string> differences(const Topology& measured, const Topology& here);

/// "2 ranks on 1 host by shm; cores: 2 of Intel Xeon", for a table's head.
std::string describe(const Topology& topology);

}  // namespace phalanx
