// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace phalanx::doctor {

/// How a program ended, and what it said.
struct Captured {
  int status = 0;     // exit status, 128 and the signal that killed it, or 127 when it could not be started
  bool late = false;  // it was killed because its time was up
  std::string output, errors;
};

/// Runs a program with nothing for input, for at most `time`; then it is killed with its process group. Throws Error
/// where this process may not even make temporary files.
Captured capture(const std::vector<std::string>& command, std::chrono::seconds time);

}  // namespace phalanx::doctor
