// SPDX-License-Identifier: Apache-2.0
#include "launch/rank/launcher_watch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "framework/base/blocked_signals.h"
#include "framework/base/descriptor.h"
#include "framework/base/environment.h"

namespace phalanx {
namespace {

// MPI ends a rank that loses its connection to mpirun, shortly before mpirun itself has ended.
constexpr int kLingerMs = 1000;

// Returns the variable that the launcher sets for its ranks and does not have itself, or an empty string if no such
// variable is known.
std::string variable_of_ranks(const LaunchEnvironment& launched) {
  if (launched.launcher == "mpirun") return "OMPI_COMM_WORLD_RANK";
  if (launched.launcher == "srun") return "SLURM_PROCID";
  if (launched.launcher == "mpiexec") return "PMI_RANK";
  const std::string torchrun = "TORCHELASTIC_RUN_ID";
  return launched.launcher == "torchrun" && environment(torchrun) ? torchrun : "";
}

// Also returns false if the process belongs to another user, such as Slurm's processes: it cannot be one of our
// scripts.
bool started_with(pid_t process, const std::string& variable) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry.starts_with(variable + "=")) return true;
  }
  return false;
}

constexpr pid_t kEnded = -1;

pid_t parent_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string key; status >> key;) {
    pid_t parent = 0;
    if (key == "PPid:" && status >> parent) return parent;
    std::getline(status, key);
  }
  return kEnded;
}

// Starts over if a script in between ends during the search, since its child then gets another parent.
pid_t find_launcher(const std::string& variable) {
  for (;;) {
    pid_t process = ::getppid();
    while (process > 1 && started_with(process, variable)) process = parent_of(process);
    if (process != kEnded) return process;
  }
}

Descriptor open_process(pid_t process) { return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))); }

bool has_ended(int process, int timeout_ms) {
  pollfd end{.fd = process, .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, timeout_ms) > 0;
}

// Splits a name at its dots.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  std::istringstream text(name);
  for (std::string part; std::getline(text, part, '.');) parts.push_back(part);
  return parts;
}

std::string name_of(const std::string& session) { return std::filesystem::path(session).filename().string(); }

// Returns true if the name of a session's folder contains the id of this process.
bool names(const std::string& session, pid_t process) {
  const std::string name = name_of(session);
  const bool made_by_open_mpi = name.starts_with("ompi.") || name.starts_with("prte.");
  return made_by_open_mpi && std::ranges::count(parts_of(name), std::to_string(process)) > 0;
}

// Returns the address at which Open MPI's process on this host serves its ranks, or an empty string if it is unknown.
std::string server_address() {
  for (const char* name : {"PMIX_SERVER_URI41", "PMIX_SERVER_URI4", "PMIX_SERVER_URI3", "PMIX_SERVER_URI2"}) {
    if (const auto uri = environment(name)) return *uri;  // ...;tcp4://127.0.0.1:59553
  }
  return {};
}

// Returns true if nothing listens at this address of this host any longer, false if that cannot be determined.
bool is_abandoned(const std::string& uri) {
  const std::string scheme = "tcp4://";
  const auto begin = uri.find(scheme), port = uri.rfind(':');
  if (begin == std::string::npos || port < begin + scheme.size()) return false;
  const std::string host = uri.substr(begin + scheme.size(), port - begin - scheme.size());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(uri.c_str() + port + 1)));
  if (!host.starts_with("127.") || ::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) return false;
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return socket.valid() && ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

// Returns true if the launcher ended before this process looked for it, so that `found` only adopted this process.
// Ranks of mpirun know the address of its server. For other launchers, only a parent that is init proves it: in a
// container, process 1 may be the launcher itself.
bool is_orphan(pid_t found, const std::string& variable, const LaunchEnvironment& launched,
               const std::string& session) {
  if (found < 1 || started_with(1, variable)) return false;  // in another process-id namespace
  if (launched.launcher == "mpirun") return !names(session, found) && is_abandoned(server_address());
  if (found != 1) return false;
  std::ifstream file("/proc/1/comm");
  std::string name;
  std::getline(file, name);
  return name == "systemd" || name == "init";
}

// Files that are left behind when the launcher is killed. Each of its ranks removes them.
struct Leftovers {
  std::string session;  // mpirun's folder; checked before removal, because anyone may have set the variable
  std::string store;    // the file through which the ranks meet

  explicit Leftovers(const LaunchEnvironment& launched) {
    if (launched.launcher == "mpirun") session = environment("PMIX_SERVER_TMPDIR").value_or("");
    const std::string& url = launched.rendezvous;
    const std::string scheme = "file://";
    if (url.starts_with(scheme)) store = url.substr(scheme.size(), url.find('?') - scheme.size());
  }

  void remove(pid_t launcher) const {
    std::error_code ignored;
    if (is_session_folder(session, launcher)) std::filesystem::remove_all(session, ignored);
    if (!store.empty()) ::unlink(store.c_str());
  }
};

// The launcher's process id is unknown, but it is one of the numbers in the name of the session.
void end_as_orphan(const Leftovers& leftovers) {
  for (const auto& part : parts_of(name_of(leftovers.session))) leftovers.remove(std::atoi(part.c_str()));
  ::raise(SIGKILL);
}

// Only SIGKILL can reach this process: signals for the whole group, such as Ctrl-C, are not meant for it.
[[noreturn]] void watch(int launcher, int rank, const Leftovers& leftovers, pid_t launcher_id) {
  // Closes all other files: a reader of the rank's output must not have to wait for this process to end.
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
    leftovers.remove(launcher_id);
  }
  ::_exit(0);
}

}  // namespace

bool is_session_folder(const std::string& folder, pid_t launcher) {
  const std::filesystem::path path(folder);
  if (!path.is_absolute() || path.lexically_normal() != path) return false;
  if (!names(folder, launcher)) return false;
  struct stat status{};
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  return ::lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() &&
         (status.st_mode & kOthers) == 0;
}

void end_with_launcher(const LaunchEnvironment& launched) {
  const auto variable = variable_of_ranks(launched);
  static bool watched = false;
  if (variable.empty() || std::exchange(watched, true)) return;
  const Leftovers leftovers(launched);
  const pid_t found = find_launcher(variable);
  if (is_orphan(found, variable, launched, leftovers.session)) end_as_orphan(leftovers);
  if (found <= 1) return;  // in another process-id namespace, or the system's first process, which outlives all others
  const Descriptor launcher = open_process(found);
  if (!launcher.valid() && errno == ESRCH) end_as_orphan(leftovers);
  const Descriptor self = open_process(::getpid());
  if (!launcher.valid() || !self.valid()) return;
  const BlockedSignals blocked;
  if (::fork() == 0) watch(launcher.get(), self.get(), leftovers, found);
}

}  // namespace phalanx
