// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/launch_mpi.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string_view>
#include <system_error>

#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/verdict.h"
#include "launch/local/supervisor.h"
#include "launch/mpirun/mpirun.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// mpirun dies of a signal that arrives before it forwards signals, and drops one that arrives before its ranks have
// started. On SIGTERM it ends the ranks within 0.3 s, using SIGKILL if they do not react. The other signals are for an
// mpirun that hangs.
Supervisor::Policy policy_of(const MpiLaunch& options) {
  return {.stop = SIGUSR1,
          .orphaned = SIGTERM,
          .after_failure = {{milliseconds(2000), SIGTERM}, {milliseconds(4000), SIGKILL}},
          .forced = {{milliseconds(0), SIGTERM}, {milliseconds(2000), SIGKILL}},
          .repeat_stop = milliseconds(200),
          .stop_policy = options.stop_policy,
          .describe_saved = options.describe_saved};
}

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> fds;
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + std::generic_category().message(errno));
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Runs in the child. Everything it needs was created before the fork.
int become(const std::vector<char*>& command, const std::vector<char*>& environment, int output, int error_output) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(error_output, STDERR_FILENO);
  ::execve(command[0], command.data(), environment.data());
  std::fprintf(stderr, "%s: %s\n", command[0], std::generic_category().message(errno).c_str());
  return 127;
}

// Reads whatever is available without waiting.
void take(int fd, const std::function<void(std::string_view)>& use) {
  std::array<char, 4096> chunk;
  for (ssize_t count; (count = ::read(fd, chunk.data(), chunk.size())) > 0;) {
    use({chunk.data(), static_cast<std::size_t>(count)});
  }
}

// Returns the ends of the ranks. If mpirun reports none, its own end is used instead.
std::vector<RankEnd> ends_of_ranks(const Supervisor::End& mpirun, const std::vector<std::string>& notices) {
  auto ends = rank_ends_in(notices);
  for (auto& end : ends) end.time = mpirun.time;
  if (ends.empty())
    ends.push_back({.rank = -1, .status = mpirun.status, .time = mpirun.time, .by_supervisor = mpirun.by_supervisor});
  return ends;
}

Verdict conclude(const MpiLaunch& options, const std::string& rendezvous_folder, const Supervisor::End& mpirun,
                 bool interrupted, const MpirunNotices& notices) {
  auto failures = take_failures(options.log_folder, rendezvous_folder);
  auto ends = ends_of_ranks(mpirun, notices.notices());
  // In an interrupted job, only the ranks' failures matter: mpirun's notices name the ranks that it ended on our
  // request.
  if (interrupted || (!failures.empty() && ends.front().rank < 0)) ends.clear();
  Verdict verdict = judge(ends, std::move(failures), interrupted, exit_status_of(mpirun.status));
  const std::string text = join(notices.notices(), "\n");
  if (verdict.cause && verdict.cause->rank < 0) {
    verdict.cause->message = text.empty() ? "mpirun: " + verdict.cause->message : text;
  } else if (!verdict.cause && !interrupted) {
    standard_error().write(text);
  }
  return verdict;
}

}  // namespace

int launch_mpi(const MpiLaunch& options) {
  const Verdict verdict = run_mpi(options);
  report(verdict, options.ranks, options.log_folder);
  if (options.ended) options.ended(verdict);
  return verdict.status;
}

Verdict run_mpi(const MpiLaunch& options) {
  if (options.command.empty()) throw ConfigError("launch with MPI: no command to run");
  require_remote_shell(options.hosts);
  require_variables(options.pass_variables);
  std::vector<std::string> inherited;
  const std::string spare = std::string(kSpareFailureFolder) + "=";
  for (char** variable = environ; *variable; ++variable) {
    if (!std::string_view(*variable).starts_with(spare)) inherited.emplace_back(*variable);
  }
  const TemporaryFolder rendezvous_folder(TemporaryFolder::Removal::kAlways);
  if (options.hosts.empty()) inherited.push_back(spare + rendezvous_folder.path());
  const std::string rendezvous = options.hosts.empty() ? "file://" + rendezvous_folder.path() + "/store" : "";
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  auto environment = mpirun_environment(inherited, rendezvous, terminal);
  auto command = mpirun_command(find_mpirun(), options, environment, ::geteuid() == 0);
  const auto argv = pointers(command), envp = pointers(environment);
  take_failures(options.log_folder);

  // Both pipes must be read, or mpirun would wait forever. A terminal is passed on, since mpirun tells ranks its width.
  Pipe output = make_pipe(), errors = make_pipe();
  MpirunNotices notices;
  const auto take_output = [&] {
    take(output.read.get(), [](std::string_view text) { standard_output().write(text); });
  };
  const auto take_errors = [&] {
    take(errors.read.get(), [&](std::string_view text) { standard_error().write(notices.feed(text)); });
  };
  Supervisor supervisor(policy_of(options));
  supervisor.start(
      [&] { return become(argv, envp, terminal ? STDOUT_FILENO : output.write.get(), errors.write.get()); });
  output.write.close();
  errors.write.close();
  supervisor.watch(output.read.get(), take_output);
  supervisor.watch(errors.read.get(), [&] {
    take_errors();
    if (!rank_ends_in(notices.notices()).empty()) supervisor.begin_shutdown();
  });
  const auto ends = supervisor.run();
  take_output();
  take_errors();
  standard_error().write(notices.finish());
  standard_output().flush();
  return conclude(options, rendezvous_folder.path(), ends.front(), supervisor.interrupted(), notices);
}

}  // namespace phalanx
