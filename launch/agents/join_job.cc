// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/join_job.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <system_error>
#include <utility>

#include "framework/base/argv.h"
#include "framework/base/descriptor.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/files.h"
#include "framework/base/handshake.h"
#include "framework/base/job_secret.h"
#include "framework/base/sockets.h"
#include "framework/base/timed_stream.h"
#include "launch/agents/join_protocol.h"
#include "launch/agents/share.h"
#include "launch/exit_status.h"
#include "launch/local/print_to_console.h"
#include "launch/signals/signals.h"

namespace phalanx {
namespace {

constexpr double kConnectSeconds = 10;
constexpr std::chrono::seconds kAnswerDeadline{30};

std::string secret_for_joining() {
  if (auto secret = job_secret()) return *std::move(secret);
  throw ConfigError(
      "--join needs the secret of the job: set PHALANX_JOB_SECRET_FILE as the job says at its start (Hosts may join "
      "with: ...), or PHALANX_JOB_SECRET or PHALANX_JOB_SECRET_FILE as for the job");
}

void greet_launcher(TimedStream& stream, const std::string& address, int ranks, const std::string& secret,
                    TimedStream::Deadline deadline) {
  const auto result = greet(stream, join_protocol(), secret, to_claim(own_join_request(ranks)), deadline);
  if (result == HandshakeResult::kAdmitted) return;
  throw ConfigError("--join " + address + ": " +
                    (result == HandshakeResult::kRefused
                         ? "the job has another secret than this process"
                         : "who listens there does not know the secret of this process, so it is not the job's "
                           "launcher, or the job has another secret"));
}

JoinAnswer ask(const std::string& address, int ranks, Descriptor& socket) {
  const std::string secret = secret_for_joining();
  TimedStream stream(connect_to(address, kConnectSeconds));
  const auto deadline = std::chrono::steady_clock::now() + kAnswerDeadline;
  try {
    greet_launcher(stream, address, ranks, secret, deadline);
    const auto length = length_of_answer(stream.receive(kLengthDigits, deadline));
    JoinAnswer answer = parse_join_answer(stream.receive(length, deadline));
    socket = stream.release();
    return answer;
  } catch (const CommError& error) {
    throw CommError(error.kind(), "--join " + address + ": the launcher does not answer: " + error.what());
  }
}

// Throws ConfigError if this host sees another folder under the name of the run folder, or none.
void require_run_folder(const JoinAnswer& answer) {
  std::string token;
  try {
    token = read_file(answer.token_file);
  } catch (const DataError&) {  // says less than the error below
  }
  if (token == answer.token) return;
  throw ConfigError("host " + host_name() + " does not see the run folder of the job, or may not read it (" +
                    answer.token_file +
                    "): hosts can join only with a file system that the hosts of the job share, as "
                    "the same user");
}

// Sets variables for the agent. What this process has itself takes precedence, except for orders.
void set_variables(const JoinAnswer& answer) {
  if (!answer.secret_is_of_job) {  // ranks of a job without a secret do not recognize each other by one
    ::unsetenv("PHALANX_JOB_SECRET");
    ::unsetenv("PHALANX_JOB_SECRET_FILE");
  }
  std::istringstream lines(answer.variables);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals == line.npos || equals == 0) continue;
    const std::string name = line.substr(0, equals);
    ::setenv(name.c_str(), line.substr(equals + 1).c_str(), name == kAgentOrder ? 1 : 0);
  }
}

// Becomes the agent, in a process group of its own, so that Ctrl-C in this terminal does not ask the whole job to stop.
// What its ranks print goes to the launcher.
[[noreturn]] void become_agent(const JoinAnswer& answer, const Descriptor& socket, pid_t parent) {
  ::setpgid(0, 0);
  die_with_parent(SIGKILL, parent);
  set_variables(answer);
  const auto fail = [](const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", what.c_str(), std::generic_category().message(errno).c_str());
    ::_exit(kUsage);
  };
  if (::chdir(answer.folder.c_str()) != 0) fail(answer.folder);
  ::dup2(socket.get(), STDIN_FILENO);
  ::dup2(socket.get(), STDOUT_FILENO);
  const auto words = argv_of(answer.command);
  ::execvp(words[0], words.data());
  fail(answer.command.front());
  ::abort();
}

int wait_for(pid_t agent) {
  int status = 0;
  while (::waitpid(agent, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(kRankDied);
}

}  // namespace

int join_job(const std::string& address, int ranks) {
  Descriptor socket;
  const JoinAnswer answer = ask(address, ranks, socket);
  if (!answer.refusal.empty()) throw ConfigError("--join " + address + ": " + answer.refusal);
  if (answer.command.empty()) throw DataError("--join " + address + ": the launcher's answer has no command");
  require_run_folder(answer);
  print_to_console("Joins the job at " + address + "; Ctrl-C leaves it");
  std::fflush(nullptr);
  const pid_t parent = ::getpid(), agent = ::fork();
  if (agent < 0) throw Error("cannot start a process: " + std::generic_category().message(errno));
  if (agent == 0) become_agent(answer, socket, parent);
  socket.close();
  return wait_for(agent);
}

}  // namespace phalanx
