// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_lease.h"
#include "launch/agents/join_relay.h"
#include "launch/agents/joins.h"
#include "launch/agents/order_line.h"
#include "launch/agents/rank_notice.h"
#include "launch/agents/shared_folder.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

// Returns the descriptor by which text reaches the launcher, which knows beats in it. What a standard input that is a
// pipe takes would come back.
int descriptor_of_beats() {
  struct stat input{};
  return ::fstat(STDIN_FILENO, &input) == 0 && S_ISSOCK(input.st_mode) ? STDIN_FILENO : STDOUT_FILENO;
}

// The lease of this host, of which the ranks know by shared memory.
class HostsLease {
 public:
  HostsLease(std::chrono::nanoseconds length, int numbers, Console& launcher)
      : length_(length),
        lease_(length, boot_time()),
        of_ranks_(std::make_shared<HostLease>(numbers, lease_.end())),
        beats_(launcher) {}

  const std::shared_ptr<HostLease>& of_ranks() const { return of_ranks_; }
  bool is_over() const { return over_; }

  void answered(std::int64_t beat) {
    lease_.answered(beat);
    of_ranks_->set_end(lease_.end());
  }

  void check(Supervisor& supervisor) {
    if (over_) return;
    const auto now = boot_time();
    over_ = now >= lease_.end();
    if (!over_) {
      beats_.draw(beat_text(lease_.send(now)));
      return;
    }
    supervisor.end_now();
    print_to_console(format_text("Host %s has heard nothing from the launcher for %.1f s, so it has ended its ranks",
                                 host_name().c_str(), std::chrono::duration<double>(length_).count()));
  }

 private:
  std::chrono::nanoseconds length_;
  AgentLease lease_;
  std::shared_ptr<HostLease> of_ranks_;
  Console& beats_;
  bool over_ = false;
};

// Reads the launcher's lines from standard input.
class Orders {
 public:
  Orders(const Share& share, HostsLease& lease, Console& launcher)
      : supervisor_(share.supervisor), share_(share), lease_(lease), launcher_(launcher) {}

  // Returns false if the launcher or the connection to it has ended.
  bool read_all() {
    std::array<char, 256> chunk;
    while (true) {
      const ssize_t count = ::read(STDIN_FILENO, chunk.data(), chunk.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0) {
        supervisor_.end_now();
        return false;
      }
      pending_.append(chunk.data(), static_cast<std::size_t>(count));
      obey();
    }
  }

 private:
  void obey() {
    for (std::size_t end; (end = pending_.find('\n')) != pending_.npos; pending_.erase(0, end + 1)) {
      const std::string order = pending_.substr(0, end);
      if (order == kStopRanks) supervisor_.stop();
      if (order == kEndRanks) supervisor_.begin_shutdown();
      if (order == kKillRanks) supervisor_.end_now();
      if (const auto beat = number_after(kAnswer, order)) lease_.answered(*beat);
      if (const auto rank = number_after(kEnded, order)) lease_.of_ranks()->declare_ended(static_cast<int>(*rank));
      if (const std::string word = std::string(kStartRank) + " "; order.starts_with(word)) {
        start(parse_newcomer(order.substr(word.size())));
      }
    }
  }

  // If the system refuses the process, it counts as one that has ended at once.
  void start(const Newcomer& newcomer) {
    try {
      share_.start(newcomer);
    } catch (const Error& error) {
      print_to_console("Rank " + std::to_string(newcomer.number) + " cannot be started on " + host_name() + ": " +
                       error.what());
      launcher_.write(to_text(RankNotice{.number = newcomer.number, .lost = true}));
    }
  }

  Supervisor& supervisor_;
  const Share& share_;
  HostsLease& lease_;
  Console& launcher_;
  std::string pending_;
};

}  // namespace

int run_agent(LocalLaunch launch, const AgentOrder& order, const std::function<int(int rank)>& body) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(launch.log_folder, unknown)) {
    throw ConfigError("host " + host_name() + " does not see the run folder (" + launch.log_folder +
                      "): the hosts of launch.hosts need a file system that all of them share; set --run_dir to a "
                      "folder there");
  }
  launch.first_rank = order.first_rank;
  launch.ranks = order.ranks;
  launch.ranks_of_job = order.ranks_of_job;
  launch.rendezvous = order.rendezvous;
  ::fcntl(STDIN_FILENO, F_SETFL, ::fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
  if (launch.replacements > 0) launch.meeting_folder = meeting_folder_of(launch.log_folder);
  Console launcher(descriptor_of_beats());
  const auto length = lease_length(launch.goes_on, launch.lost_after);
  HostsLease lease(length, order.ranks_of_job + launch.replacements + kMostJoined, launcher);
  set_lease_of_process(lease.of_ranks());
  std::optional<Orders> orders;
  const int status = run_share(launch, body, [&](Share& share) {
    orders.emplace(share, lease, launcher);
    share.ended = [&](int number, bool lost) { launcher.write(to_text(RankNotice{.number = number, .lost = lost})); };
    share.supervisor.watch(STDIN_FILENO, [&] { return orders->read_all(); });
    share.supervisor.repeat(beat_interval(length), [&] { lease.check(share.supervisor); });
  });
  const int result = lease.is_over() ? kWithoutLease : status;
  launcher.write(status_text(result));
  launcher.flush();
  return result;
}

}  // namespace phalanx
