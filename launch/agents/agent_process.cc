// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent_process.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "launch/agents/command_relay.h"
#include "launch/agents/join_relay.h"

namespace phalanx {
namespace {

// Closes all descriptors of this process but its standard streams and these two.
void close_others(int one, int other) {
  const auto [low, high] = std::minmax({static_cast<unsigned>(one), static_cast<unsigned>(other)});
  const auto close = [](unsigned first, unsigned last) {
    if (first <= last) ::close_range(first, last, 0);
  };
  close(STDERR_FILENO + 1, low - 1);
  close(low + 1, high - 1);
  close(high + 1, ~0U);
}

}  // namespace

// Everything that is needed was created before the fork. A separate process group keeps the terminal's signals away.
int run_agent_command(const std::vector<char*>& command, const Descriptor& socket, bool with_output) {
  ::setpgid(0, 0);
  ::signal(SIGTSTP, SIG_DFL);
  ::dup2(socket.get(), STDIN_FILENO);
  if (with_output) ::dup2(socket.get(), STDOUT_FILENO);
  ::execvp(command[0], command.data());
  std::fprintf(stderr, "%s: %s\n", command[0], std::generic_category().message(errno).c_str());
  return 127;
}

// The separate process group keeps the terminal's signals away from srun, too.
int relay_agent_command(const std::vector<std::string>& srun, const Descriptor& socket) {
  ::setpgid(0, 0);
  ::signal(SIGTSTP, SIG_DFL);
  close_others(socket.get(), socket.get());
  return relay_command(socket, srun);
}

// Closes what it has inherited: its copies of other hosts' connections would keep these open after their ends.
int speak_with_joined(const Descriptor& socket, const Descriptor& connection, const std::string& answer) {
  ::setpgid(0, 0);
  close_others(socket.get(), connection.get());
  return relay(socket, connection, answer);
}

}  // namespace phalanx
