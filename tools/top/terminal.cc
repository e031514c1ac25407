// SPDX-License-Identifier: Apache-2.0
#include "tools/top/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <ctime>
#include <string>
#include <utility>

#include "framework/base/write_all.h"

namespace phalanx {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGWINCH};
constexpr const char *kOwnScreen = "\033[?1049h\033[?25l", *kScreenBefore = "\033[?25h\033[?1049l";

volatile sig_atomic_t quit_wanted = 0, resized = 0;

void note_signal(int number) {
  if (number == SIGWINCH) {
    resized = 1;
  } else {
    quit_wanted = 1;
  }
}

// Writes control sequences as they are, which Console does not: it makes text printable. A terminal that is gone is
// noticed by SIGHUP.
void write_control(const std::string& text) { (void)write_all(STDOUT_FILENO, text); }

}  // namespace

// The signals are blocked except while wait() waits, so that none arrives between a check and the wait.
Terminal::Terminal() {
  quit_wanted = 0;
  resized = 0;
  sigset_t all;
  ::sigemptyset(&all);
  for (const int number : kSignals) ::sigaddset(&all, number);
  ::sigprocmask(SIG_BLOCK, &all, &blocked_before_);
  struct sigaction action = {};
  action.sa_handler = &note_signal;
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &handlers_before_[i]);
  termios settings{};
  if (::tcgetattr(STDIN_FILENO, &settings) == 0) {
    before_ = settings;
    settings.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &settings);
  }
  write_control(kOwnScreen);
}

Terminal::~Terminal() {
  write_control(kScreenBefore);
  if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &handlers_before_[i], nullptr);
  ::sigprocmask(SIG_SETMASK, &blocked_before_, nullptr);
}

void Terminal::show(const std::vector<std::string>& lines) const {
  std::string text = "\033[H";  // to the first column of the first line
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i == 0 ? "" : "\n") + lines[i] + "\033[K";  // clears the rest
  write_control(text + "\033[J");
}

Terminal::Event Terminal::wait(std::chrono::milliseconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (quit_wanted == 0) {
    if (resized != 0) {
      resized = 0;
      return Event::kResized;
    }
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Event::kTime;
    const std::timespec time{.tv_sec = left.count() / 1'000'000'000, .tv_nsec = left.count() % 1'000'000'000};
    pollfd keys{.fd = before_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::ppoll(&keys, 1, &time, &blocked_before_) <= 0 || keys.revents == 0) continue;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q') return Event::kQuit;
  }
  return Event::kQuit;
}

std::optional<std::pair<int, int>> terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return std::pair<int, int>(size.ws_col, size.ws_row);
}

}  // namespace phalanx
