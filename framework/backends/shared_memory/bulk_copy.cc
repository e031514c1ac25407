// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/shared_memory/bulk_copy.h"

#include <fstream>

namespace phalanx::shared_memory {
namespace {

// Asks the kernel. sysconf() would add up caches that are shared by different cores.
std::size_t ask_kernel() {
  constexpr std::size_t kUnknown = 32 << 20;
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  std::size_t kilobytes = 0;
  return file >> kilobytes && kilobytes > 0 ? kilobytes << 10 : kUnknown;
}

}  // namespace

std::size_t cache_bytes() {
  static const std::size_t bytes = ask_kernel();
  return bytes;
}

}  // namespace phalanx::shared_memory
