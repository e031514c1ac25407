// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// Returns the numbers of the cores that this thread may run on, ascending. A core that runs several hardware threads
/// has a number for each of them. Returns none if the kernel does not report them, as on a machine of more than
/// CPU_SETSIZE (1024) cores.
std::vector<int> allowed_cores();

/// Returns the number of cores that this thread may run on, at least 1. If the kernel does not report it, this is the
/// number of cores of the machine.
int usable_cores();

/// Restricts this thread, and the threads and processes that it starts from now on, to these cores. Returns false if
/// the kernel refuses.
bool stay_on_cores(const std::vector<int>& cores);

/// Returns the number of the NUMA node that a core belongs to, or 0 on a machine without NUMA nodes. Tests pass another
/// folder in place of /sys as `system`.
int numa_node(int core, const std::string& system = "/sys");

}  // namespace phalanx
