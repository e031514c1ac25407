// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace phalanx {

/// A stream that people read: standard output, or standard error. Writing to it can neither fail nor wait, whatever
/// becomes of its other end: a terminal that is stopped or a pipe that nobody reads leaves it what does not fit yet, up
/// to kMostKept bytes; what a closed pipe or a full disk refuses is left out. The log is told once of either.
///
/// Thread-safe. A process forked from this one begins with nothing kept. The process must ignore SIGPIPE, unless a
/// closed pipe is to end it.
class Console {
 public:
  static constexpr std::size_t kMostKept = 1 << 16;

  /// `file` stays its owner's, who may have it lead elsewhere at any time (dup2).
  explicit Console(int file) : file_(file) {}
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Text that stays. Whole, and in order, while what is kept does not exceed kMostKept.
  void write(std::string_view text);

  /// Text that the next one replaces: left out, as a whole, unless all before it has been taken. Whether it was shown.
  bool draw(std::string_view text);

  /// Waits up to `limit` for what is kept to be taken. Before the process ends.
  void flush(std::chrono::milliseconds limit = std::chrono::seconds(2));

  /// Of the terminal that it ends at; 0: there is none.
  int columns() const;

 private:
  struct Target {
    pid_t process = 0;
    dev_t device = 0, special = 0;
    ino_t inode = 0;
    mode_t mode = 0;
    bool operator==(const Target&) const = default;
  };

  void follow_target();
  bool push();
  ssize_t write_without_waiting(std::string_view text) const;
  void tell_once(const std::string& problem);

  const int file_;
  std::mutex mutex_;
  Target target_;
  int reopened_ = -1;  // the same pipe or terminal, with writes that do not wait; -1: could not be had, or needs none
  std::string kept_;
  bool told_ = false;
};

/// Of this process; never destroyed.
Console& standard_output();
Console& standard_error();

}  // namespace phalanx
