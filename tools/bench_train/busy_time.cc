// SPDX-License-Identifier: Apache-2.0
#include "tools/bench_train/busy_time.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "framework/base/error.h"

namespace phalanx::bench_train {

double busy_seconds() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, interrupts = 0, soft_interrupts = 0;
  file >> cpu >> user >> nice >> system >> idle >> io_wait >> interrupts >> soft_interrupts;
  if (!file || cpu != "cpu") throw Error("/proc/stat does not begin with the CPU time of all cores");
  const auto ticks = user + nice + system + interrupts + soft_interrupts;
  return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace phalanx::bench_train
