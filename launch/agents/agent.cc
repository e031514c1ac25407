// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_lease.h"
#include "launch/agents/launcher_link.h"
#include "launch/local/print_to_console.h"

namespace phalanx {
namespace {

// Returns the descriptor by which text reaches the launcher, which knows beats in it. What a standard input that is a
// pipe takes would come back.
int descriptor_of_beats() {
  struct stat input{};
  return ::fstat(STDIN_FILENO, &input) == 0 && S_ISSOCK(input.st_mode) ? STDIN_FILENO : STDOUT_FILENO;
}

// Obeys an order of the launcher.
void obey(const std::string& order, Supervisor& supervisor) {
  if (order == kStopRanks) supervisor.stop();
  if (order == kEndRanks) supervisor.begin_shutdown();
  if (order == kKillRanks) supervisor.end_now();
}

// Does what the launcher wants, and ends the ranks without it or a lease.
class LauncherOrders {
 public:
  LauncherOrders(LauncherLink& link, std::chrono::nanoseconds lease) : link_(link), lease_(lease) {}

  bool has_lease() const { return !over_; }

  // Returns false if nothing more comes from the launcher.
  bool follow(Supervisor& supervisor) {
    const auto news = link_.take();
    for (const auto& order : news.orders) obey(order, supervisor);
    if (news.ended) supervisor.end_now();
    if (news.lease_is_over && !std::exchange(over_, true)) {
      supervisor.end_now();
      print_to_console(format_text("Host %s has heard nothing from the launcher for %.1f s, so it has ended its ranks",
                                   host_name().c_str(), std::chrono::duration<double>(lease_).count()));
    }
    return !news.ended;
  }

 private:
  LauncherLink& link_;
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
  const auto length = lease_length(launch.goes_on, launch.lost_after);
  LauncherLink link(STDIN_FILENO, descriptor_of_beats(), length, order.ranks_of_job);
  set_lease_of_process(link.lease());
  LauncherOrders orders(link, length);
  const int status = run_share(launch, body, [&](Supervisor& supervisor) {
    supervisor.watch(link.fd(), [&] { return orders.follow(supervisor); });
    supervisor.repeat(beat_interval(length), [&] { orders.follow(supervisor); });
    link.start();
  });
  return orders.has_lease() ? status : kWithoutLease;
}

}  // namespace phalanx
