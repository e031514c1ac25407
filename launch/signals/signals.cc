// SPDX-License-Identifier: Apache-2.0
#include "launch/signals/signals.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "launch/exit_status.h"

namespace phalanx {

bool catches(pid_t process, int signal) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string key; status >> key;) {
    std::uint64_t caught = 0;
    if (key == "SigCgt:" && status >> std::hex >> caught) return ((caught >> (signal - 1)) & 1) != 0;
    std::getline(status, key);
  }
  return false;
}

void die_with_parent(int signal, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, signal);
  if (::getppid() != parent) ::_exit(kInterrupted);
}

}  // namespace phalanx
