// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A core with its hardware threads.
struct PhysicalCore {
  int node = 0;              // NUMA
  std::vector<int> threads;  // by number, in order; the kernel calls each of them a CPU
};

/// The cores to which these hardware threads (allowed_cores()) belong, with only the threads given; ordered by node,
/// then by number. If the kernel does not say, each thread is a core of its own on node 0. `system`: a different /sys.
std::vector<PhysicalCore> physical_cores(const std::vector<int>& threads, const std::string& system = "/sys");

/// The hardware threads of a rank's share of the cores. Shares are contiguous in the order of the cores and nearly
/// equal. If there are at least as many cores as ranks, ranks share no core; otherwise, no hardware thread. Throws
/// ConfigError if there are fewer hardware threads than ranks. `rank` and `ranks` are those of this host.
std::vector<int> own_cores(const std::vector<PhysicalCore>& cores, int rank, int ranks);

/// All hardware threads of a rank's NUMA nodes: of one node, which it may share with other ranks, or of several if
/// there are fewer ranks than nodes. `cores`: at least one.
std::vector<int> own_nodes(const std::vector<PhysicalCore>& cores, int rank, int ranks);

/// "0-7,16-23", as taskset(1) reads them.
std::string describe_cores(std::vector<int> threads);

}  // namespace phalanx
