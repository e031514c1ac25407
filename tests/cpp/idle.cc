// SPDX-License-Identifier: Apache-2.0
// Prints what the library has changed in a process that has only loaded it, and its version.
#include <phalanx/version.h>

#include <cstdio>
#include <fstream>
#include <string>

int main() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Sig") || line.starts_with("Threads")) std::printf("%s\n", line.c_str());
  }
  std::printf("version %s\n", phalanx::library_version());
}
