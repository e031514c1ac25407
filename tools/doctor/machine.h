// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::doctor {

/// What this process finds itself on. Text that cannot be had is empty, numbers are 0.
struct Machine {
  std::string host, kernel, distribution, compiler;
  std::string cpu;         // model
  int cores = 0;           // online
  int allowed_cores = 0;   // that this process may run on
  double quota_cores = 0;  // of cgroup's cpu.max; 0: no limit
  int numa_nodes = 0;
  bool virtual_machine = false;
  std::int64_t memory = 0, available_memory = 0;   // bytes
  std::int64_t dev_shm = 0;                        // size of /dev/shm, bytes
  std::int64_t open_files = 0, locked_memory = 0;  // soft limits (locked memory in bytes); -1: none
  std::string malloc;                              // the allocator, and what tunes it
  std::vector<std::string> devices;                // of NVIDIA, as their driver names them
};

/// Reads /proc, /sys and limits under `root`; "" but for tests.
Machine read_machine(const std::string& root = "");

/// The distance between two cores.
struct CoreLink {
  int first = 0, second = 0;
  double round_trip_ns = 0;  // a cache line there and back, median
};

/// From the first core that this process may use to each other one, at most `most` of them, spread evenly. A few
/// milliseconds each. Empty where there is one core.
std::vector<CoreLink> measure_cores(int most);

/// 10^9 bytes a second that one core copies, buffers larger than its caches.
double measure_copy_gb_s();

}  // namespace phalanx::doctor
