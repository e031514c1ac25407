// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <source_location>
#include <sstream>
#include <string>

namespace phalanx {

enum class LogLevel { kInfo, kWarning, kError, kNone };

/// Where log lines go. Before the first configure_log(): to stderr, warnings and errors only.
struct LogOptions {
  std::string file{};                              // appended to and made if needed; gets every line; empty: no file
  LogLevel stderr_threshold = LogLevel::kWarning;  // this and above go to stderr too; kNone: nothing does
  int rank = -1;                                   // in every line; -1: not known yet
};

/// Replaces the options. Throws DataError when the file cannot be opened, and keeps the old options then.
///
/// In a child of fork() the parent's options hold until the child sets its own. Fork before any other thread logs.
void configure_log(const LogOptions& options);

/// Replaces only the file.
void log_to_file(const std::string& path);

/// While it lives, what this thread logs goes by options of its own: for ranks that are threads.
class ThreadLog {
 public:
  explicit ThreadLog(const LogOptions& options);  // throws DataError when the file cannot be opened
  ~ThreadLog();
  ThreadLog(const ThreadLog&) = delete;
  ThreadLog& operator=(const ThreadLog&) = delete;
};

/// One line of the log, written when it goes out of scope:
///
///     log_warning() << "peer " << peer << " is " << late << " ms late";
///
///     2026-01-31 09:26:53.589793 rank 3 WARNING framework/comm/store.cc:42: peer 1 is 250 ms late
///
/// Thread-safe. A line is one write(), so nothing is lost when the process is killed and the lines of several processes
/// do not mix. A level that goes nowhere is not formatted. Never throws: a line that the file does not take goes to
/// stderr.
class LogLine {
 public:
  LogLine(LogLevel level, std::source_location where);
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  template <class T>
  LogLine& operator<<(const T& value) {
    if (text_) *text_ << value;
    return *this;
  }

 private:
  LogLevel level_;
  std::source_location where_;
  std::optional<std::ostringstream> text_;
};

inline LogLine log_info(std::source_location where = std::source_location::current()) {
  return {LogLevel::kInfo, where};
}
inline LogLine log_warning(std::source_location where = std::source_location::current()) {
  return {LogLevel::kWarning, where};
}
inline LogLine log_error(std::source_location where = std::source_location::current()) {
  return {LogLevel::kError, where};
}

}  // namespace phalanx
