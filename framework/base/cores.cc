// SPDX-License-Identifier: Apache-2.0
#include "framework/base/cores.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <thread>

namespace phalanx {

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

int usable_cores() {
  const auto allowed = static_cast<int>(allowed_cores().size());
  return std::max(1, allowed > 0 ? allowed : static_cast<int>(std::thread::hardware_concurrency()));
}

bool stay_on_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
}

int numa_node(int core, const std::string& system) {
  const std::string folder = system + "/devices/system/cpu/cpu" + std::to_string(core);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with("node")) continue;
    const char *first = name.data() + 4, *last = name.data() + name.size();
    int node = 0;
    if (std::from_chars(first, last, node).ptr == last && first != last) return node;
  }
  return 0;
}

}  // namespace phalanx
