// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "framework/comm/store.h"

namespace phalanx::bench {

/// A program that is told things line by line and answers line by line. It inherits standard error, and ends when its
/// standard input does. Not thread-safe.
class Child {
 public:
  /// command[0] is looked for on PATH. `name` is what errors call it; empty: command[0]. `patience` is the time that it
  /// has to end when its input does. Throws Error when it cannot be started.
  explicit Child(const std::vector<std::string>& command, const std::string& name = "", Seconds patience = Seconds(2));
  ~Child();  // ends its input, waits for its end as long as it has patience, then kills it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Throw Error when it has ended, or says nothing for `timeout`.
  void tell(const std::string& line);
  std::string hear(Seconds timeout);

 private:
  std::string name_;
  Seconds patience_;
  pid_t process_ = -1;
  int socket_ = -1;
  std::string heard_;  // what has come of the next lines
};

/// Runs a program to its end; its exit status, or 128 and the signal that killed it. 127 when there is none.
int run_program(const std::vector<std::string>& command);

}  // namespace phalanx::bench
