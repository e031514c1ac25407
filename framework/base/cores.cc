#include "framework/base/cores.h"

#include <sched.h>

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

bool stay_on_core(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return ::sched_setaffinity(0, sizeof(one), &one) == 0;
}

}  // namespace phalanx
