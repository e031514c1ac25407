// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <termios.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// Takes over the terminal at standard output: shows frames on the alternate screen (ECMA-48), and reads keys without
/// Enter. The destructor restores the terminal. At most one object exists at a time, in the
/// main thread; it handles SIGINT, SIGTERM, SIGHUP and SIGWINCH.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Replaces the frame. Lines must fit on the screen.
  void show(const std::vector<std::string>& lines) const;

  enum class Event { kTime, kResized, kQuit };

  /// Blocks until the time has passed, the terminal has another size, or the user wants to end: q, Ctrl-C, or a signal.
  Event wait(std::chrono::milliseconds limit) const;

 private:
  std::optional<termios> before_;  // absent: standard input is not a terminal
  sigset_t blocked_before_;
  struct sigaction handlers_before_[4];
};

/// Returns the size of the terminal at standard output: columns and rows, or nothing if it is not a terminal or does
/// not say.
std::optional<std::pair<int, int>> terminal_size();

}  // namespace phalanx
