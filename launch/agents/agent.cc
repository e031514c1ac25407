// SPDX-License-Identifier: Apache-2.0
#include "launch/agents/agent.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace phalanx {
namespace {

// Reads the launcher's lines from standard input.
class Orders {
 public:
  explicit Orders(Supervisor& supervisor) : supervisor_(supervisor) {}

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
    }
  }

  Supervisor& supervisor_;
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
  std::optional<Orders> orders;
  return run_share(launch, body, [&](Supervisor& supervisor) {
    orders.emplace(supervisor);
    supervisor.watch(STDIN_FILENO, [&] { return orders->read_all(); });
  });
}

}  // namespace phalanx
