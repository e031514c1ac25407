#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// A core, with the hardware threads that share its units.
struct PhysicalCore {
  int node = 0;              // NUMA
  std::vector<int> threads;  // by number, in order; the kernel calls each of them a CPU
};

/// The cores that these hardware threads (allowed_cores()) are of, with those of them alone; by node, then number.
/// Where the kernel does not tell, each is a core by itself, of node 0. `system`: another /sys.
std::vector<PhysicalCore> physical_cores(const std::vector<int>& threads, const std::string& system = "/sys");

/// The hardware threads of a rank's own part of the cores. Parts are nearly equal, and neighbours in the order of the
/// cores. Ranks share no core; where there are fewer cores than ranks, no hardware thread. Throws ConfigError where
/// there are fewer hardware threads than ranks. `rank` and `ranks` are of this host.
std::vector<int> own_cores(const std::vector<PhysicalCore>& cores, int rank, int ranks);

/// All hardware threads of the NUMA nodes of a rank: of one that it may share with others, or of several where there
/// are fewer ranks than nodes. `cores`: at least one.
std::vector<int> own_nodes(const std::vector<PhysicalCore>& cores, int rank, int ranks);

/// "0-7,16-23", as taskset(1) reads them.
std::string describe_cores(std::vector<int> threads);

}  // namespace phalanx
