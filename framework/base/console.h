// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

namespace phalanx {

/// A stream that people read: standard output or standard error. A write neither fails nor blocks, even if the other
/// end of the stream stops or goes away. If the other end is a stopped terminal or a pipe that no one reads, up to
/// kMaxKept bytes are kept until it takes them. Text that a closed pipe or a full disk refuses is dropped. Only the
/// first loss is logged.
///
/// Thread-safe. A process forked from this one starts with nothing kept. The process must ignore SIGPIPE, unless a
/// closed pipe should end it.
class Console {
 public:
  static constexpr std::size_t kMaxKept = 1 << 16;

  /// The caller keeps `file` open, and may make it refer to another stream at any time (dup2).
  explicit Console(int file) : file_(file) {}
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  /// Writes text that stays. It is written whole and in order, as long as no more than kMaxKept bytes are waiting.
  void write(std::string_view text);

  /// Writes text that the next text replaces, such as a progress line. Drops it as a whole unless everything before it
  /// has been taken. Returns true if it was shown.
  bool draw(std::string_view text);

  /// Waits up to `limit` until everything that is kept has been taken, then drops the rest. For use before the process
  /// ends.
  void flush(std::chrono::milliseconds limit = std::chrono::seconds(2));

  /// Returns the width of the terminal that the stream ends at, or 0 if it is not a terminal.
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
  int reopened_ = -1;  // the same pipe or terminal, opened for writes that do not block; -1 if failed or not needed
  std::string kept_;
  bool told_ = false;
};

/// The consoles of this process. They are never destroyed.
Console& standard_output();
Console& standard_error();

}  // namespace phalanx
