// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "framework/base/console.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_lease.h"
#include "launch/agents/join_relay.h"
#include "launch/agents/joins.h"
#include "launch/agents/launcher_link.h"
#include "launch/agents/rank_notice.h"
#include "launch/agents/shared_folder.h"
#include "launch/local/meeting_folder.h"
#include "launch/local/print_to_console.h"
#include "launch/local/run_share.h"

namespace phalanx {
namespace {

// Returns the descriptor by which text reaches the launcher, which knows beats in it. What a standard input that is a
// pipe takes would come back.
int descriptor_of_beats() {
  struct stat input{};
  return ::fstat(STDIN_FILENO, &input) == 0 && S_ISSOCK(input.st_mode) ? STDIN_FILENO : STDOUT_FILENO;
}

// Does what the launcher wants, and ends the ranks without it or a lease.
class LauncherOrders {
 public:
  LauncherOrders(const Share& share, LauncherLink& link, Console& launcher, std::chrono::nanoseconds lease)
      : supervisor_(share.supervisor), share_(share), link_(link), launcher_(launcher), lease_(lease) {}

  bool has_lease() const { return !over_; }

  // Returns false if nothing more comes from the launcher.
  bool follow() {
    const auto news = link_.take();
    for (const auto& order : news.orders) obey(order);
    if (news.ended) supervisor_.end_now();
    if (news.lease_is_over && !std::exchange(over_, true)) {
      supervisor_.end_now();
      print_to_console(format_text("Host %s has heard nothing from the launcher for %.1f s, so it has ended its ranks",
                                   host_name().c_str(), std::chrono::duration<double>(lease_).count()));
    }
    return !news.ended;
  }

 private:
  void obey(const std::string& order) {
    if (order == kStopRanks) supervisor_.stop();
    if (order == kEndRanks) supervisor_.begin_shutdown();
    if (order == kKillRanks) supervisor_.end_now();
    if (const std::string word = std::string(kStartRank) + " "; order.starts_with(word)) {
      start(parse_newcomer(order.substr(word.size())));
    }
  }

  // If the process cannot be started, it counts as one that has ended at once. Once the ranks here are being ended, the
  // last signal to them may have been sent, so nothing would end it.
  void start(const Newcomer& newcomer) {
    try {
      if (supervisor_.is_ending()) throw Error("the ranks there are being ended");
      share_.start(newcomer);
    } catch (const Error& error) {
      print_to_console("Rank " + std::to_string(newcomer.number) + " cannot be started on " + host_name() + ": " +
                       error.what());
      launcher_.write(to_text(RankNotice{.number = newcomer.number, .lost = true}));
    }
  }

  Supervisor& supervisor_;
  const Share& share_;
  LauncherLink& link_;
  Console& launcher_;
  std::chrono::nanoseconds lease_;
  bool over_ = false;
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
  if (launch.replacements > 0) launch.meeting_folder = meeting_folder_of(launch.log_folder);
  Console launcher(descriptor_of_beats());
  const auto length = lease_length(launch.goes_on, launch.lost_after);
  std::optional<LauncherLink> link;
  link.emplace(STDIN_FILENO, launcher, length, order.ranks_of_job + launch.replacements + kMostJoined);
  set_lease_of_process(link->lease());
  std::optional<LauncherOrders> orders;
  const int status = run_share(launch, body, [&](Share& share) {
    orders.emplace(share, *link, launcher, length);
    share.ended = [&](int number, bool lost, int status) {
      launcher.write(to_text(RankNotice{.number = number, .lost = lost, .status = status}));
    };
    share.supervisor.watch(link->fd(), [&] { return orders->follow(); });
    share.supervisor.repeat(beat_interval(length), [&] { orders->follow(); });
    link->start();
  });
  const int result = orders->has_lease() ? status : kWithoutLease;
  link.reset();  // no beat follows the status
  launcher.write(status_text(result));
  launcher.flush();
  return result;
}

}  // namespace phalanx
