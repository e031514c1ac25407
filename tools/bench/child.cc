// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/child.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "framework/base/argv.h"
#include "framework/base/error.h"

namespace phalanx::bench {
namespace {

using Clock = std::chrono::steady_clock;

// `end` becomes the child's standard input and output; with -1, the child inherits them from this process.
pid_t spawn(const std::vector<std::string>& command, int end) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO}) {
    if (end >= 0) ::posix_spawn_file_actions_adddup2(&actions, end, standard);
  }
  pid_t process = -1;
  const auto argv = argv_of(command);
  const int status = ::posix_spawnp(&process, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (status != 0) throw Error("cannot start " + command[0] + ": " + std::generic_category().message(status));
  return process;
}

// One socket serves both directions: unlike a pipe it can be written without SIGPIPE.
std::pair<Descriptor, Descriptor> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error("cannot make a socket pair: " + std::generic_category().message(errno));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
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

Child::Child(const std::vector<std::string>& command, const std::string& name, Seconds patience)
    : Child(command, name, patience, socket_pair()) {}

Child::Child(const std::vector<std::string>& command, const std::string& name, Seconds patience,
             std::pair<Descriptor, Descriptor> ends)
    : patience_(patience),
      lines_(std::move(ends.first), name.empty() ? command.at(0) : name),
      process_(spawn(command, ends.second.get())) {}

Child::~Child() {
  lines_.close();
  if (ends_within(process_, patience_)) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

bool Child::running() const { return ::waitpid(process_, nullptr, WNOHANG) == 0; }

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
