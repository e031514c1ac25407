// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

/// The cores that this thread may run on, by number, in order. None where the kernel does not tell: on a machine of
/// more than CPU_SETSIZE (1024) cores. A core that runs several hardware threads has a number for each of them.
std::vector<int> allowed_cores();

/// How many cores this thread may run on: all of the machine where the kernel does not tell. At least 1.
int usable_cores();

/// Keeps this thread, and what it starts from now on, on these. False where the kernel refuses.
bool stay_on_cores(const std::vector<int>& cores);

/// The number of the NUMA node that a core belongs to; a machine that is not divided is node 0. `system`: another /sys.
int numa_node(int core, const std::string& system = "/sys");

}  // namespace phalanx
