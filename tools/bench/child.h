// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "framework/comm/store/store.h"

namespace phalanx::bench {

/// A child process that receives lines on standard input and answers with lines on standard output. It inherits
/// standard error, and must end when its standard input is closed. Not thread-safe.
class Child {
 public:
  /// command[0] is searched on PATH. `name` is the name that error messages use; empty: command[0]. `patience` is the
  /// time that the child has to end after its input is closed. Throws Error if it cannot be started.
  explicit Child(const std::vector<std::string>& command, const std::string& name = "", Seconds patience = Seconds(2));
  ~Child();  // closes its input, waits up to `patience` for its end, then kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Both throw Error if the child has ended; receive() also if no line arrives within `timeout`.
  void send(const std::string& line);
  std::string receive(Seconds timeout);

 private:
  std::string name_;
  Seconds patience_;
  pid_t process_ = -1;
  int socket_ = -1;
  std::string received_;  // received bytes that receive() has not returned yet
};

/// Runs a program to its end. Returns its exit status, 128 plus the signal that killed it, or 127 if the program does
/// not exist.
int run_program(const std::vector<std::string>& command);

}  // namespace phalanx::bench
