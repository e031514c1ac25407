// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <poll.h>

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "framework/base/cores.h"
#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "launch/temporary_folder.h"
#include "tools/bench/child.h"
#include "tools/bench/peer_subject.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {
namespace {

/// The process next to this rank, and on rank 0 what started it. Members end in reverse order: the processes end when
/// their ranks disconnect, and then their launcher does.
struct LaunchedProcess {
  std::optional<TemporaryFolder> folder;  // holds the sockets by which ranks and processes meet
  std::optional<Child> launcher;
  std::optional<LineSocket> lines;
};

constexpr Seconds kPatience{5};

// Returns the connection that the process makes to `listener`. Throws Error if it does not come, or if the launcher,
// which only rank 0 has, ends.
Descriptor accept_process(int listener, const std::optional<Child>& launcher, const std::string& name,
                          Seconds timeout) {
  constexpr int kMillisecondsBetweenChecks = 50;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (std::chrono::steady_clock::now() < deadline) {
    if (launcher && !launcher->running()) {
      throw Error(name + ": its launcher has ended; its output on standard error says why");
    }
    pollfd ready{.fd = listener, .events = POLLIN, .revents = 0};
    ::poll(&ready, 1, kMillisecondsBetweenChecks);
    Descriptor connection = accept_from(listener);
    if (!connection.valid()) continue;
    ::fcntl(connection.get(), F_SETFL, 0);  // blocks
    return connection;
  }
  throw Error(name + ": its launcher has not started the process of this rank");
}

std::string cores_of_rank() {
  std::string text;
  for (const int core : allowed_cores()) text += (text.empty() ? "" : " ") + std::to_string(core);
  return text;
}

class LaunchedSubject final : public PeerSubject {
 public:
  LaunchedSubject(const PeerLibrary& library, int size, std::shared_ptr<LineSocket> lines, Seconds timeout)
      : PeerSubject(library.name, size, std::move(lines), timeout), lacks_(library.lacks) {}

  std::string absent(const Case& what) const override {
    if (lacks_.contains(what.op)) return name() + " has no such function";
    const bool fits = sizes_of(what, size()).whole <= std::numeric_limits<int>::max();
    return fits ? PeerSubject::absent(what) : "its calls take at most 2^31 - 1 elements";
  }

 private:
  std::set<std::string> lacks_;
};

}  // namespace

std::unique_ptr<Subject> make_launched_subject(const PeerLibrary& library, const RankInfo& rank_info, StorePtr store,
                                               Seconds timeout) {
  if (!rank_info.one_host()) throw ConfigError("--against " + library.name + ": all ranks must be on one host");
  const auto rendezvous = make_prefix_store("bench/" + library.name, std::move(store));
  const auto process = std::make_shared<LaunchedProcess>();
  if (rank_info.rank == 0) rendezvous->set("folder", process->folder.emplace().path());
  const std::string folder = rendezvous->get("folder");
  const Descriptor listener = listen_at("unix:" + folder + "/" + std::to_string(rank_info.rank));
  store_barrier(*rendezvous, "listening", rank_info.size);
  if (rank_info.rank == 0) {
    process->launcher.emplace(start_command(library, rank_info.size, folder), library.name + "'s launcher", kPatience);
  }
  process->lines.emplace(accept_process(listener.get(), process->launcher, library.name, timeout), library.name);
  process->lines->ask(cores_of_rank(), timeout);  // "ready"
  store_barrier(*rendezvous, "ready", rank_info.size);
  return std::make_unique<LaunchedSubject>(library, rank_info.size,
                                           std::shared_ptr<LineSocket>(process, &*process->lines), timeout);
}

}  // namespace phalanx::bench
