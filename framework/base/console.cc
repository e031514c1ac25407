// SPDX-License-Identifier: Apache-2.0
#include "framework/base/console.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <system_error>

#include "framework/base/log.h"
#include "framework/base/printable.h"

namespace phalanx {
namespace {

bool ready(int file, std::chrono::milliseconds limit) {
  pollfd one{.fd = file, .events = POLLOUT, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

// Escapes control characters other than our own style for a terminal. Files and pipes get every byte.
std::string shown(int file, std::string_view text) {
  return ::isatty(file) != 0 ? printable_with_style(text) : std::string(text);
}

}  // namespace

Console::~Console() {
  if (reopened_ >= 0) ::close(reopened_);
}

void Console::write(std::string_view given) {
  const std::lock_guard lock(mutex_);
  const std::string text = shown(file_, given);
  follow_target();
  if (kept_.size() + text.size() > kMaxKept) {
    push();
    if (kept_.size() + text.size() > kMaxKept) {
      tell_once("is not being read, so text for it is left out");
      return;
    }
  }
  kept_ += text;
  push();
}

bool Console::draw(std::string_view given) {
  const std::lock_guard lock(mutex_);
  const std::string text = shown(file_, given);
  follow_target();
  push();
  if (!kept_.empty()) return false;
  kept_ = text;
  if (!push()) return false;
  const bool shown = kept_.size() < text.size() || text.empty();
  if (!shown) kept_.clear();  // text that has begun to be written must be completed
  return shown;
}

void Console::flush(std::chrono::milliseconds limit) {
  const std::lock_guard lock(mutex_);
  follow_target();
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + limit;
  for (push(); !kept_.empty(); push()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) break;
    ready(file_, left);
  }
  if (kept_.empty()) return;
  tell_once("is not being read, so text for it is left out");
  kept_.clear();
}

int Console::columns() const {
  winsize size{};
  if (::isatty(file_) == 0) return 0;
  return ::ioctl(file_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// Adapts to a descriptor that was redirected, in this process or in the one that forked it. Pipes and
// terminals are opened again, because whether writes block is a property that this process shares with all others that
// have the same stream open.
void Console::follow_target() {
  struct stat now{};
  if (::fstat(file_, &now) != 0) now = {};
  const Target target{::getpid(), now.st_dev, now.st_rdev, now.st_ino, now.st_mode};
  if (target == target_) return;
  if (target.process != target_.process) {
    kept_.clear();  // the text of the parent process, which writes it itself
    told_ = false;
  }
  target_ = target;
  if (reopened_ >= 0) ::close(reopened_);
  const bool waits = S_ISFIFO(now.st_mode) || S_ISCHR(now.st_mode);
  const std::string path = "/proc/self/fd/" + std::to_string(file_);
  reopened_ = waits ? ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
}

// Writes as much of the kept text as is possible without blocking. Returns false if the write failed; the kept text is
// then dropped.
bool Console::push() {
  while (!kept_.empty()) {
    const ssize_t count = write_without_waiting(kept_);
    if (count > 0) {
      kept_.erase(0, static_cast<std::size_t>(count));
    } else if (count == 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno != EINTR) {
      const int error = errno;
      kept_.clear();
      tell_once("refuses text: " + std::generic_category().message(error));
      return false;
    }
  }
  return true;
}

ssize_t Console::write_without_waiting(std::string_view text) const {
  if (reopened_ >= 0) return ::write(reopened_, text.data(), text.size());
  if (S_ISSOCK(target_.mode)) return ::send(file_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (S_ISREG(target_.mode)) return ::write(file_, text.data(), text.size());
  // A pipe that is ready takes at least this many bytes at once.
  if (!ready(file_, std::chrono::milliseconds(0))) return 0;
  return ::write(file_, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
}

void Console::tell_once(const std::string& problem) {
  if (told_) return;
  told_ = true;
  const char* name = file_ == STDOUT_FILENO ? "standard output" : file_ == STDERR_FILENO ? "standard error" : "console";
  log_warning() << name << " " << problem << "; the run goes on, and metrics.jsonl has its progress";
}

// The consoles are never destroyed, so that destructors of other globals can still write.
Console& standard_output() {
  static auto* const console = new Console(STDOUT_FILENO);
  return *console;
}

Console& standard_error() {
  static auto* const console = new Console(STDERR_FILENO);
  return *console;
}

}  // namespace phalanx
