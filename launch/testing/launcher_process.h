// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "framework/testing/scratch.h"

namespace phalanx::testing {

/// Returns the file's text, or an empty string if there is no file.
std::string text_of(const std::string& path);

/// A child process that runs a launcher, so that a test can signal and kill it. Its standard output and error go to a
/// file of the scratch folder.
class LauncherProcess {
 public:
  LauncherProcess(const Scratch& scratch, const std::function<int()>& launch);
  ~LauncherProcess();
  LauncherProcess(const LauncherProcess&) = delete;
  LauncherProcess& operator=(const LauncherProcess&) = delete;

  void signal(int signal) const;
  int wait();  // returns the exit status, 128 + the signal it died of, or 124 after more than 10 s
  std::string output() const { return text_of(output_); }

  /// Returns its children and their descendants.
  std::vector<pid_t> descendants() const;

 private:
  pid_t pid_;
  std::string output_;
};

/// Returns true if the process is running. A zombie is not.
bool is_running(pid_t pid);

/// Polls `condition` for at most `seconds`. Returns true if it became true.
bool becomes_true(const std::function<bool()>& condition, double seconds = 5);

}  // namespace phalanx::testing
