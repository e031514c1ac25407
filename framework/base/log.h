// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <source_location>
#include <sstream>
#include <string>
#include <string_view>

namespace phalanx {

enum class LogLevel { kInfo, kWarning, kError, kNone };

/// The destinations of log lines. Before the first configure_log(), only warnings and errors are written, to stderr.
struct LogOptions {
  std::string file{};  // file that gets every line; created if needed, otherwise appended to; empty: no file
  LogLevel stderr_threshold = LogLevel::kWarning;  // lines of this level and above go to stderr too; kNone: none do
  int rank = -1;                                   // printed in every line; -1: not known yet
};

/// Replaces the options. Throws DataError if the file cannot be opened, and then keeps the old options.
///
/// A child of fork() has the parent's options until it sets its own. Fork before any other thread logs.
void configure_log(const LogOptions& options);

/// Replaces only the file.
void log_to_file(const std::string& path);

/// Gives the calling thread separate log options while an object of this class lives. For ranks that are threads.
class ThreadLog {
 public:
  explicit ThreadLog(const LogOptions& options);  // throws DataError when the file cannot be opened
  ~ThreadLog();
  ThreadLog(const ThreadLog&) = delete;
  ThreadLog& operator=(const ThreadLog&) = delete;
};

/// Takes the lines of this copy of the code instead of writing them. A plug-in that contains its own copy uses this,
/// since its lines belong in the log of the program. Null: lines are written.
using TakeLogLine = void(LogLevel level, const std::source_location& where, std::string_view text);
void pass_log_to(TakeLogLine* take);

/// Writes a line that another copy of the code has passed on.
void write_log_line(LogLevel level, const std::source_location& where, std::string_view text);

/// One line of the log, which is written when the object goes out of scope:
///
///     log_warning() << "peer " << peer << " is " << late << " ms late";
///
///     2026-01-31 09:26:53.589793 rank 3 WARNING framework/comm/store/store.cc:42: peer 1 is 250 ms late
///
/// Thread-safe. A line is one write(), so nothing is lost when the process is killed, and the lines of several
/// processes do not mix. Lines of a level that is not written anywhere are not formatted. Never throws: a line that
/// cannot be written to the file goes to stderr.
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
