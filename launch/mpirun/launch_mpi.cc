// SPDX-License-Identifier: Apache-2.0
#include "launch/mpirun/launch_mpi.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <system_error>

#include "framework/base/argv.h"
#include "framework/base/console.h"
#include "framework/base/descriptor.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "launch/failure/failure.h"
#include "launch/failure/failure_report.h"
#include "launch/failure/verdict.h"
#include "launch/local/supervisor.h"
#include "launch/mpirun/end_of_run.h"
#include "launch/mpirun/launcher_notices.h"
#include "launch/mpirun/mpi_losses.h"
#include "launch/mpirun/mpi_verdict.h"
#include "launch/mpirun/mpirun.h"
#include "launch/temporary_folder.h"

namespace phalanx {
namespace {

using std::chrono::milliseconds;

// Open MPI's mpirun dies of a signal that arrives before it forwards signals, and drops one that arrives before its
// ranks have started. On SIGTERM it ends the ranks within 0.3 s, using SIGKILL if they do not react. The other signals
// are for an mpirun that hangs.
//
// Hydra only forwards SIGTERM, and ends the ranks on a second SIGINT. They end soon after it has been killed.
Supervisor::Policy policy_of(const MpiLaunch& options, const Mpirun& mpirun) {
  Supervisor::Policy policy{.stop = SIGUSR1,
                            .orphaned = SIGTERM,
                            .after_failure = {{milliseconds(2000), SIGTERM}, {milliseconds(4000), SIGKILL}},
                            .forced = {{milliseconds(0), SIGTERM}, {milliseconds(2000), SIGKILL}},
                            .repeat_stop = milliseconds(200),
                            .stop_policy = options.stop_policy,
                            .describe_saved = options.describe_saved};
  if (!mpirun.is_hydra()) return policy;
  policy.orphaned = SIGKILL;
  policy.after_failure = {{milliseconds(2000), SIGINT}, {milliseconds(2300), SIGINT}, {milliseconds(5000), SIGKILL}};
  policy.forced = {{milliseconds(0), SIGINT}, {milliseconds(300), SIGINT}, {milliseconds(3000), SIGKILL}};
  return policy;
}

// Hydra does not end the job when a rank that has not started MPI fails. The launcher learns it from the failure that
// the rank writes, if the file system of the folder reports it.
class FailureWatch {
 public:
  explicit FailureWatch(const std::string& folder)
      : folder_(folder), events_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    if (events_.valid()) ::inotify_add_watch(events_.get(), folder.c_str(), IN_MOVED_TO);
  }

  void start(Supervisor& supervisor) const {
    if (!events_.valid()) return;
    supervisor.watch(events_.get(), [this, &supervisor] {
      std::array<char, 4096> ignored;
      while (::read(events_.get(), ignored.data(), ignored.size()) > 0) continue;
      if (!read_failures(folder_).empty()) supervisor.begin_shutdown();
      return true;
    });
  }

 private:
  const std::string folder_;
  const Descriptor events_;
};

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> fds;
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) throw Error("cannot make a pipe: " + std::generic_category().message(errno));
  ::fcntl(fds[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(fds[0]), Descriptor(fds[1])};
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
  const Mpirun mpirun = identify_mpirun(find_mpirun());
  const std::string host_file = rendezvous_folder.path() + "/hosts";
  if (!options.hosts.empty()) std::ofstream(host_file) << join(options.hosts, "\n") << "\n";
  auto environment = mpirun_environment(mpirun, inherited, rendezvous, terminal);
  auto command = mpirun_command(mpirun, options, environment, ::geteuid() == 0, host_file);
  const auto argv = argv_of(command), envp = argv_of(environment);
  take_failures(options.log_folder);
  take_end_of_run(options.log_folder);
  std::optional<MpiLosses> losses;
  if (options.goes_on) losses.emplace(options.log_folder);

  // Both pipes must be read, or mpirun would wait forever. Open MPI's gets the terminal, since it tells ranks its
  // width.
  Pipe output = make_pipe(), errors = make_pipe();
  LauncherNotices notices(mpirun);
  const auto take_output = [&] {
    take(output.read.get(), [&](std::string_view text) { standard_output().write(notices.feed_output(text)); });
  };
  const auto take_errors = [&] {
    take(errors.read.get(), [&](std::string_view text) { standard_error().write(notices.feed_errors(text)); });
  };
  const FailureWatch failures(options.log_folder);
  Supervisor supervisor(policy_of(options, mpirun));
  const int standard_output_of_mpirun = terminal && !mpirun.is_hydra() ? STDOUT_FILENO : output.write.get();
  supervisor.start([&] { return become(argv, envp, standard_output_of_mpirun, errors.write.get()); });
  output.write.close();
  errors.write.close();
  supervisor.watch(output.read.get(), [&] {
    take_output();
    return true;
  });
  supervisor.watch(errors.read.get(), [&] {
    take_errors();
    if (!losses && !notices.ends().empty()) supervisor.begin_shutdown();
    return true;
  });
  if (mpirun.is_hydra()) failures.start(supervisor);
  if (losses) losses->watch(supervisor);
  const auto ends = supervisor.run();
  take_output();
  take_errors();
  standard_output().write(notices.finish_output());
  standard_error().write(notices.finish_errors());
  standard_output().flush();
  return conclude({.options = options,
                   .spare = rendezvous_folder.path(),
                   .mpirun = ends.front(),
                   .notices = notices,
                   .losses = losses ? &*losses : nullptr},
                  supervisor);
}

}  // namespace phalanx
