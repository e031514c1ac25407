#include "tools/launch/catches.h"

#include <cstdint>
#include <fstream>
#include <string>

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

}  // namespace phalanx
