// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "framework/comm/store/store.h"
#include "tools/bench/line_socket.h"

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

  /// The lines to and from the child.
  LineSocket& lines() { return lines_; }
  void send(const std::string& line) { lines_.send(line); }
  std::string receive(Seconds timeout) { return lines_.receive(timeout); }

  /// Returns false once the child has ended.
  bool running() const;

 private:
  Child(const std::vector<std::string>& command, const std::string& name, Seconds patience,
        std::pair<Descriptor, Descriptor> ends);

  Seconds patience_;
  LineSocket lines_;
  pid_t process_;
};

/// Runs a program to its end. Returns its exit status, 128 plus the signal that killed it, or 127 if the program does
/// not exist.
int run_program(const std::vector<std::string>& command);

}  // namespace phalanx::bench
