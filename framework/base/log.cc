// SPDX-License-Identifier: Apache-2.0
#include "framework/base/log.h"

#include <fcntl.h>
#include <glog/logging.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>

#include "framework/base/error.h"
#include "framework/base/printable.h"

namespace phalanx {
namespace {

static_assert(static_cast<int>(LogLevel::kInfo) == google::GLOG_INFO);
static_assert(static_cast<int>(LogLevel::kWarning) == google::GLOG_WARNING);
static_assert(static_cast<int>(LogLevel::kError) == google::GLOG_ERROR);

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

// The sink that glog passes each line to. glog's own files are not usable here: glog chooses their names, symbolic
// links and buffers, they need InitGoogleLogging(), and until then every line goes to stderr.
class RankSink final : public google::LogSink {
 public:
  RankSink() = default;
  ~RankSink() override {
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

  // Writes a line; glog calls the sink before this returns. The lock is shared by all sinks, because glog asks the C
  // library for the time zone with every line, and neither is made for many threads at once.
  void write(LogLevel level, const std::source_location& where, std::string_view text) {
    const std::scoped_lock lock(mutex_);
    google::LogMessage(where.file_name(), static_cast<int>(where.line()), static_cast<int>(level), this, false).stream()
        << text;
  }

 private:
  using google::LogSink::send;
  void send(google::LogSeverity severity, const char* file, const char*, int line, const google::LogMessageTime& time,
            const char* message, std::size_t length) override {
    const std::string text = prefix(severity, file, line, time) + printable({message, length}) + '\n';
    const bool filed = fd_ < 0 || write_line(fd_, text);
    const bool shown = !filed || severity >= static_cast<int>(options_.stderr_threshold);
    if (shown && stderr_is_ready()) write_line(STDERR_FILENO, text);
  }

  static int open(const std::string& path) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) throw DataError(path + ": " + std::generic_category().message(errno));
    return fd;
  }

  std::string prefix(google::LogSeverity severity, const char* file, int line,
                     const google::LogMessageTime& time) const {
    std::array<char, 64> when;
    std::snprintf(when.data(), when.size(), "%04d-%02d-%02d %02d:%02d:%02d.%06d ", time.year() + 1900, time.month() + 1,
                  time.day(), time.hour(), time.min(), time.sec(), static_cast<int>(time.usec()));
    const std::string rank = options_.rank < 0 ? "" : "rank " + std::to_string(options_.rank) + " ";
    return when.data() + rank + google::GetLogSeverityName(severity) + " " + file + ":" + std::to_string(line) + ": ";
  }

  inline static std::mutex mutex_;
  LogOptions options_;
  int fd_ = -1;
  std::atomic<LogLevel> lowest_ = LogOptions{}.stderr_threshold;
};

thread_local std::unique_ptr<RankSink> thread_sink;

// Never destroyed, so that destructors of other globals can still log.
RankSink& process_sink() {
  static RankSink* const sink = [] {
    FLAGS_log_prefix = false;  // lines have our own prefix, which includes the rank
    return new RankSink;
  }();
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
  process_sink();  // sets glog up
  auto own = std::make_unique<RankSink>();
  own->configure(options);
  thread_sink = std::move(own);
}

ThreadLog::~ThreadLog() { thread_sink.reset(); }

LogLine::LogLine(LogLevel level, std::source_location where) : level_(level), where_(where) {
  if (sink().wants(level)) text_.emplace();
}

LogLine::~LogLine() {
  if (!text_) return;
  try {
    sink().write(level_, where_, text_->view());
  } catch (...) {
    // Out of memory: the line is lost, and the program goes on.
  }
}

}  // namespace phalanx
