#pragma once

#include <vector>

namespace phalanx {

/// The cores that this thread may run on, by number, in order. None where the kernel does not tell: on a machine of
/// more than CPU_SETSIZE (1024) cores.
std::vector<int> allowed_cores();

/// Keeps this thread, and what it starts from now on, on one of them. False where the kernel refuses.
bool stay_on_core(int core);

}  // namespace phalanx
