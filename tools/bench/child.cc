// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/child.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <system_error>
#include <thread>

#include "framework/base/error.h"

namespace phalanx::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const auto& word : words) all.push_back(const_cast<char*>(word.c_str()));
  all.push_back(nullptr);
  return all;
}

// `end` becomes the child's standard input and output; with -1, the child inherits them from this process.
pid_t spawn(const std::vector<std::string>& command, int end) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) {
    if (end >= 0) ::posix_spawn_file_actions_adddup2(&actions, end, standard);
  }
  pid_t process = -1;
  const auto argv = pointers(command);
  const int status = ::posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (status != 0) throw Error("cannot start " + command[0] + ": " + std::generic_category().message(status));
  return process;
}

bool ends_within(pid_t process, Seconds time) {
  const auto deadline = Clock::now() + time;
  while (::waitpid(process, nullptr, WNOHANG) == 0) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace

// One socket serves both directions: unlike a pipe it can be written without SIGPIPE.
Child::Child(const std::vector<std::string>& command, const std::string& name, Seconds patience)
    : name_(name.empty() ? command.at(0) : name), patience_(patience) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error("cannot make a socket pair: " + std::generic_category().message(errno));
  }
  socket_ = ends[0];
  try {
    process_ = spawn(command, ends[1]);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[1]);
}

Child::~Child() {
  ::close(socket_);
  if (ends_within(process_, patience_)) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void Child::send(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno != EINTR) throw Error(name_ + " has ended");
    sent += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
  }
}

std::string Child::receive(Seconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (received_.find('\n') == std::string::npos) {
    const std::chrono::duration<double, std::milli> left = deadline - Clock::now();
    pollfd ready{.fd = socket_, .events = POLLIN, .revents = 0};
    const int count = left.count() > 0 ? ::poll(&ready, 1, static_cast<int>(left.count()) + 1) : 0;
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) {
      char seconds[32];
      std::snprintf(seconds, sizeof(seconds), "%g", timeout.count());
      throw Error(name_ + " has not answered for " + seconds + " s");
    }
    char chunk[512];
    const ssize_t bytes = ::read(socket_, chunk, sizeof(chunk));
    if (bytes <= 0) throw Error(name_ + " has ended; its output on standard error says why");
    received_.append(chunk, static_cast<std::size_t>(bytes));
  }
  const auto end = received_.find('\n');
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

int run_program(const std::vector<std::string>& command) {
  pid_t process = -1;
  try {
    process = spawn(command, -1);
  } catch (const Error&) {
    return 127;
  }
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace phalanx::bench
