// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/command_relay.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <system_error>
#include <thread>

#include "framework/base/argv.h"
#include "launch/agents/join_relay.h"
#include "launch/exit_status.h"
#include "launch/signals/signals.h"

namespace phalanx {
namespace {

// The command has closed its end, so it is about to end.
constexpr std::chrono::milliseconds kEndOfCommand{2000}, kLook{2};

// Returns what waitpid() says of a child, or nothing if it does not end in time.
std::optional<int> end_of(pid_t child) {
  const auto deadline = std::chrono::steady_clock::now() + kEndOfCommand;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kLook);
  }
  return status;
}

}  // namespace

int relay_command(const Descriptor& launcher, const std::vector<std::string>& command) {
  const auto words = argv_of(command);
  const pid_t self = ::getpid();
  std::array<int, 2> ends;
  const bool connected = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0;
  const pid_t child = connected ? ::fork() : -1;
  if (child < 0) {
    std::fprintf(stderr, "%s: %s\n", words[0], std::generic_category().message(errno).c_str());
    return kConnectionBroke;
  }
  if (child == 0) {
    die_with_parent(SIGTERM, self);
    ::dup2(ends[1], STDIN_FILENO);
    ::dup2(ends[1], STDOUT_FILENO);
    ::execvp(words[0], words.data());
    std::fprintf(stderr, "%s: %s\n", words[0], std::generic_category().message(errno).c_str());
    ::_exit(127);
  }
  ::close(ends[1]);
  const int said = relay(launcher, Descriptor(ends[0]), "");
  const auto end = end_of(child);
  const bool refused = end && WIFEXITED(*end) && WEXITSTATUS(*end) == kUsage;
  return said == kConnectionBroke && refused ? kUsage : said;
}

}  // namespace phalanx
