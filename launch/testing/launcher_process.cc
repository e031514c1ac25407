// SPDX-License-Identifier: Apache-2.0
#include "launch/testing/launcher_process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace phalanx::testing {
namespace {

struct Stat {
  char state = 'X';  // default: ended
  pid_t parent = 0;
};

Stat stat_of(pid_t pid) {
  const std::string text = text_of("/proc/" + std::to_string(pid) + "/stat");
  Stat stat;
  // The name before it may contain any characters, including spaces and brackets.
  if (const auto name_end = text.rfind(')'); name_end != text.npos) {
    std::sscanf(text.c_str() + name_end + 1, " %c %d", &stat.state, &stat.parent);
  }
  return stat;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const pid_t pid = std::atoi(entry.path().filename().c_str());
    if (pid > 0 && stat_of(pid).parent == parent) children.push_back(pid);
  }
  return children;
}

}  // namespace

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // reads as much as possible: a process in /proc may end during the call
  return text.str();
}

LauncherProcess::LauncherProcess(const Scratch& scratch, const std::function<int()>& launch)
    : output_(scratch.path("launcher.output")) {
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  for (const int signal : {SIGHUP, SIGINT, SIGTERM, SIGUSR1}) ::signal(signal, SIG_DFL);  // even if the test ignores it
  const int file = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  ::dup2(file, STDOUT_FILENO);
  ::dup2(file, STDERR_FILENO);
  const int status = launch();
  std::fflush(nullptr);
  ::_exit(status);
}

LauncherProcess::~LauncherProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void LauncherProcess::signal(int signal) const { ::kill(pid_, signal); }

int LauncherProcess::wait() {
  int status = 0;
  if (!becomes_true([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; }, 10)) return 124;
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<pid_t> LauncherProcess::descendants() const {
  std::vector<pid_t> all = children_of(pid_);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto more = children_of(all[i]);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

bool is_running(pid_t pid) {
  const char state = stat_of(pid).state;
  return state != 'X' && state != 'Z';
}

bool becomes_true(const std::function<bool()>& condition, double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace phalanx::testing
