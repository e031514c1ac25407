// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

namespace phalanx::testing {

/// The end of a command.
struct Outcome {
  int status = -1;  // the exit status, or -1 if a signal ended it
  std::string output;
  double seconds = 0;
};

/// Runs a command of the shell, and returns its standard output and error.
inline Outcome run_command(const std::string& command) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> part{};
  while (const auto count = std::fread(part.data(), 1, part.size(), pipe)) outcome.output.append(part.data(), count);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace phalanx::testing
