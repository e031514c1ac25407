#pragma once

#include <chrono>

namespace phalanx {

/// When the system started this process, loading of its libraries included; exact to 10 ms.
std::chrono::steady_clock::time_point process_start();

}  // namespace phalanx
