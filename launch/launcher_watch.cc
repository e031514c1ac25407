#include "launch/launcher_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "framework/base/blocked_signals.h"
#include "framework/base/descriptor.h"
#include "framework/base/environment.h"

namespace phalanx {
namespace {

// MPI ends a rank that loses its connection to mpirun, a moment before mpirun itself has ended.
constexpr int kLingerMs = 1000;

// What the launcher gives to its ranks and does not have itself; empty: there is none to look for.
std::string variable_of_ranks(const LaunchEnvironment& launched) {
  if (launched.launcher == "mpirun") return "OMPI_COMM_WORLD_RANK";
  if (launched.launcher == "srun") return "SLURM_PROCID";
  if (launched.launcher == "mpiexec") return "PMI_RANK";
  const std::string torchrun = "TORCHELASTIC_RUN_ID";
  return launched.launcher == "torchrun" && environment(torchrun) ? torchrun : "";
}

// False too where the process is another user's, as Slurm's are: such a one is no script of ours.
bool started_with(pid_t process, const std::string& variable) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(variable + "=")) return true;
  }
  return false;
}

pid_t parent_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string key; status >> key;) {
    pid_t parent = 0;
    if (key == "PPid:" && status >> parent) return parent;
    std::getline(status, key);
  }
  return 0;
}

pid_t find_launcher(const std::string& variable) {
  pid_t process = ::getppid();
  while (process > 1 && started_with(process, variable)) process = parent_of(process);
  return process;
}

Descriptor open_process(pid_t process) { return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))); }

bool has_ended(int process, int timeout_ms) {
  pollfd end{.fd = process, .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, timeout_ms) > 0;
}

// The environment may have been set by anybody, so the folder is checked before it is removed.
std::string named_session_folder(const LaunchEnvironment& launched) {
  return launched.launcher == "mpirun" ? environment("PMIX_SERVER_TMPDIR").value_or("") : "";
}

// No signal but SIGKILL reaches it: what is meant for the whole group, such as Ctrl-C, is not meant for it.
[[noreturn]] void watch(int launcher, int rank, const std::string& session, pid_t launcher_id) {
  // Whoever reads the rank's output waits for its end, not for this one's.
  constexpr int kLauncher = 0, kRank = 1, kRest = 2;
  const int kept_launcher = ::fcntl(launcher, F_DUPFD, kRest), kept_rank = ::fcntl(rank, F_DUPFD, kRest);
  ::dup2(kept_launcher, kLauncher);
  ::dup2(kept_rank, kRank);
  ::close_range(kRest, ~0U, 0);
  ::prctl(PR_SET_NAME, "phalanx-tidy");
  std::array<pollfd, 2> ends{pollfd{.fd = kLauncher, .events = POLLIN, .revents = 0},
                             pollfd{.fd = kRank, .events = POLLIN, .revents = 0}};
  ::poll(ends.data(), ends.size(), -1);
  if (has_ended(kLauncher, kLingerMs)) {
    ::syscall(SYS_pidfd_send_signal, kRank, SIGKILL, nullptr, 0);
    has_ended(kRank, -1);
    std::error_code ignored;  // its other ranks do the same
    if (is_session_folder(session, launcher_id)) std::filesystem::remove_all(session, ignored);
  }
  ::_exit(0);
}

// One of the parts of a name that dots divide.
bool has_part(const std::string& name, const std::string& part) {
  return ("." + name + ".").find("." + part + ".") != std::string::npos;
}

}  // namespace

bool is_session_folder(const std::string& folder, pid_t launcher) {
  const std::filesystem::path path(folder);
  const std::string name = path.filename().string();
  if (!path.is_absolute() || path.lexically_normal() != path) return false;
  if (!name.starts_with("ompi.") && !name.starts_with("prte.")) return false;
  if (!has_part(name, std::to_string(launcher))) return false;
  struct stat status{};
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & kOthers) == 0;
}

void end_with_launcher(const LaunchEnvironment& launched) {
  const auto variable = variable_of_ranks(launched);
  if (variable.empty()) return;
  const pid_t found = find_launcher(variable);
  if (found <= 1) return;  // of another process-id namespace, or the system's first process, which outlives all others
  const Descriptor launcher = open_process(found), self = open_process(::getpid());
  if (!launcher.valid() || !self.valid()) return;
  const auto session = named_session_folder(launched);
  const BlockedSignals blocked;
  if (::fork() == 0) watch(launcher.get(), self.get(), session, found);
}

}  // namespace phalanx
