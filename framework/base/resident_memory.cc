// SPDX-License-Identifier: Apache-2.0
#include "framework/base/resident_memory.h"

#include <fstream>
#include <string>

namespace phalanx {

// getrusage() would include what the process was before it called exec().
std::int64_t peak_resident_bytes() {
  constexpr std::int64_t kKilobyte = 1024;
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key; std::getline(status, key)) {
    std::int64_t kilobytes = 0;
    if (key == "VmHWM:" && status >> kilobytes) return kilobytes * kKilobyte;
  }
  return 0;
}

}  // namespace phalanx
