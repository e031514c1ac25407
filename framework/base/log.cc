// SPDX-License-Identifier: Apache-2.0
#include "framework/base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/printable.h"
#include "framework/base/wall_clock.h"

namespace phalanx {
namespace {

constexpr std::array<const char*, 3> kLevelNames{"INFO", "WARNING", "ERROR"};

bool write_line(int fd, std::string_view line) {
  ssize_t written = 0;
  do {
    written = ::write(fd, line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(line.size());
}

// Returns true if stderr can take a line without blocking. No line is worth waiting for a reader that may not exist.
bool stderr_is_ready() {
  pollfd file{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&file, 1, 0) > 0;
}

// The destination of the lines of a process or of a thread.
class RankSink {
 public:
  RankSink() = default;
  ~RankSink() {
    if (fd_ >= 0) ::close(fd_);
  }
  RankSink(const RankSink&) = delete;
  RankSink& operator=(const RankSink&) = delete;

  void configure(const LogOptions& options) {
    const int fd = options.file.empty() ? -1 : open(options.file);
    const std::scoped_lock lock(mutex_);
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
    options_ = options;
    lowest_ = fd >= 0 ? LogLevel::kInfo : options.stderr_threshold;
  }

  LogOptions options() const {
    const std::scoped_lock lock(mutex_);
    return options_;
  }

  bool wants(LogLevel level) const { return level >= lowest_; }

  void write(LogLevel level, const std::source_location& where, std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    const std::scoped_lock lock(mutex_);
    const std::string line = prefix(level, where) + printable(text) + '\n';
    const bool filed = fd_ < 0 || write_line(fd_, line);
    const bool shown = !filed || level >= options_.stderr_threshold;
    if (shown && stderr_is_ready()) write_line(STDERR_FILENO, line);
  }

 private:
  static int open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) throw DataError(path + ": " + std::generic_category().message(errno));
    return fd;
  }

  std::string prefix(LogLevel level, const std::source_location& where) const {
    using std::chrono::microseconds;
    const auto now = std::chrono::duration_cast<microseconds>(wall_time().time_since_epoch());
    const std::time_t seconds = now / std::chrono::seconds(1);
    std::tm time{};
    ::localtime_r(&seconds, &time);
    std::array<char, 64> when;
    std::snprintf(when.data(), when.size(), "%04d-%02d-%02d %02d:%02d:%02d.%06d ", time.tm_year + 1900, time.tm_mon + 1,
                  time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec,
                  static_cast<int>(now % std::chrono::seconds(1) / microseconds(1)));
    const std::string rank = options_.rank < 0 ? "" : "rank " + std::to_string(options_.rank) + " ";
    return when.data() + rank + kLevelNames[static_cast<std::size_t>(level)] + " " + where.file_name() + ":" +
           std::to_string(where.line()) + ": ";
  }

  mutable std::mutex mutex_;
  LogOptions options_;
  int fd_ = -1;
  std::atomic<LogLevel> lowest_ = LogOptions{}.stderr_threshold;
};

thread_local std::unique_ptr<RankSink> thread_sink;
std::atomic<TakeLogLine*> take_line{nullptr};

// Never destroyed, so that destructors of other globals can still log.
RankSink& process_sink() {
  static auto* const sink = new RankSink;
  return *sink;
}

RankSink& sink() { return thread_sink ? *thread_sink : process_sink(); }

}  // namespace

void configure_log(const LogOptions& options) { process_sink().configure(options); }

void log_to_file(const std::string& path) {
  LogOptions options = process_sink().options();
  options.file = path;
  configure_log(options);
}

ThreadLog::ThreadLog(const LogOptions& options) {
  auto own = std::make_unique<RankSink>();
  own->configure(options);
  thread_sink = std::move(own);
}

ThreadLog::~ThreadLog() { thread_sink.reset(); }

void pass_log_to(TakeLogLine* take) { take_line = take; }

void write_log_line(LogLevel level, const std::source_location& where, std::string_view text) {
  LogLine(level, where) << text;
}

LogLine::LogLine(LogLevel level, std::source_location where) : level_(level), where_(where) {
  if (take_line.load() != nullptr || sink().wants(level)) text_.emplace();
}

LogLine::~LogLine() {
  if (!text_) return;
  try {
    if (auto* const take = take_line.load()) {
      take(level_, where_, text_->view());
    } else {
      sink().write(level_, where_, text_->view());
    }
  } catch (...) {
    // Out of memory: the line is lost, and the program goes on.
  }
}

}  // namespace phalanx
