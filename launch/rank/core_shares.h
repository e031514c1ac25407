// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A core with its hardware threads.
struct PhysicalCore {
  int node = 0;              // NUMA node
  std::vector<int> threads;  // numbers in ascending order; the kernel calls each thread a CPU
};

/// Returns the cores to which these hardware threads (allowed_cores()) belong, with only the given threads, ordered by
/// node and then by number. If the kernel does not report this, each thread is its own core on node 0. `system`
/// replaces /sys.
std::vector<PhysicalCore> physical_cores(const std::vector<int>& threads, const std::string& system = "/sys");

/// Returns the hardware threads of a rank's share of the cores. Shares are contiguous in the order of the cores and
/// nearly equal. If there are at least as many cores as ranks, no two ranks share a core; otherwise, no two ranks share
/// a hardware thread. Throws ConfigError if there are fewer hardware threads than ranks. `rank` and `ranks` refer to
/// this host.
std::vector<int> own_cores(const std::vector<PhysicalCore>& cores, int rank, int ranks);

/// Returns all hardware threads of a rank's NUMA nodes: of one node, which it may share with other ranks, or of several
/// if there are fewer ranks than nodes. `cores` must not be empty.
std::vector<int> own_nodes(const std::vector<PhysicalCore>& cores, int rank, int ranks);

/// Returns a text such as "0-7,16-23", in the format of taskset(1).
std::string describe_cores(std::vector<int> threads);

}  // namespace phalanx
