// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The ranks, machines and programs that figures were measured with, and to which alone they apply. A value.
struct Topology {
  struct Host {
    int ranks = 0;      // on this host
    int cores = 0;      // that this process may use
    std::string cpu{};  // its model, as Linux calls it

    bool operator==(const Host&) const = default;
  };

  std::vector<Host> hosts{};  // in the order of their first ranks
  std::string device = "cpu";
  std::string backend{};
  std::string phalanx{}, libtorch{};  // versions
  std::string mpi{};                  // version; empty where the backend does not use MPI

  bool operator==(const Topology&) const = default;

  int ranks() const;
};

/// The topology of the world's ranks, the same on all of them. Collective. `mpi`: its version, where `backend` uses it.
Topology detect_topology(Communicator& world, const std::string& backend, const std::string& mpi);

/// What is not alike, for messages: "cores per host: 8, here 2". Empty: nothing.
std::vector<std::string> differences(const Topology& measured, const Topology& here);

/// "2 ranks on 1 host: 2 x Intel Xeon (2 cores), shm", for a table's head.
std::string describe(const Topology& topology);

}  // namespace phalanx
