// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace phalanx::doctor {

/// The exit status and the output of a program.
struct ProgramOutput {
  int status = 0;     // exit status, 128 plus the signal that killed it, or 127 if it could not be started
  bool late = false;  // true if it was killed because its time was up
  std::string output, errors;
};

/// Runs a program with empty input. After `time` it is killed with its process group. Throws Error if this process
/// cannot make temporary files.
ProgramOutput capture(const std::vector<std::string>& command, std::chrono::seconds time);

}  // namespace phalanx::doctor
