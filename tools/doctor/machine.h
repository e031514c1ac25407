// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::doctor {

/// The machine that this process runs on. Unknown texts are empty, unknown numbers are 0.
struct Machine {
  std::string host, kernel, distribution, compiler;
  std::string cpu;         // name of the model
  int cores = 0;           // online cores
  int allowed_cores = 0;   // cores that this process may run on
  double quota_cores = 0;  // limit by cgroup's cpu.max; 0: no limit
  int numa_nodes = 0;
  bool virtual_machine = false;
  std::int64_t memory = 0, available_memory = 0;   // bytes
  std::int64_t dev_shm = 0;                        // size of /dev/shm, bytes
  std::int64_t open_files = 0, locked_memory = 0;  // soft limits (locked memory in bytes); -1: none
  std::string malloc;                              // name and settings of the allocator
  std::vector<std::string> devices;                // NVIDIA devices, with their driver's names
};

/// Reads /proc, /sys and limits. `root` is a prefix of the paths that is only set in tests.
Machine read_machine(const std::string& root = "");

/// The communication time between two cores.
struct CoreLink {
  int first = 0, second = 0;
  double round_trip_ns = 0;  // time of a cache line to the other core and back, median
};

/// Measures from the first core that this process may use to the others: to at most `most` of them, spread evenly. Each
/// takes a few milliseconds. Empty if there is only one core.
std::vector<CoreLink> measure_cores(int most);

/// Returns how many 10^9 bytes per second one core copies between buffers larger than its caches.
double measure_copy_gb_s();

}  // namespace phalanx::doctor
