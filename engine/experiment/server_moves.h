// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "engine/engine.h"
#include "engine/watch/delayed_vote.h"
#include "framework/comm/communicator.h"
#include "framework/ps/current_servers.h"

namespace phalanx {

/// Has a run move to other parameter servers when the file that lists them has changed (roles.servers_file).
///
/// Rank 0 looks at the file once a second. The ranks agree on a step as they do where a run is to stop, then each of
/// them tries to reach all new servers. If all can, whatever the run keeps on servers moves between two steps
/// (CurrentServers). Otherwise, and where the file cannot be read, there is a warning, and the run goes on with the
/// servers that it has until the file changes again.
class ServerMoves {
 public:
  struct Options {
    std::string file;        // roles.servers_file; empty: servers stay
    std::int64_t delay = 1;  // in steps, of the agreement
    bool apart = false;      // see DelayedVote
    bool shown = false;      // on rank 0's standard output
  };

  /// All must outlive it. `servers`: null where the file is empty.
  ServerMoves(Options options, CommunicatorPtr group, std::shared_ptr<ps::CurrentServers> servers);

  /// After those hooks of an update that use the servers.
  void attach(Engine& engine);

  std::int64_t moves() const { return moves_; }

 private:
  void after_step(const State& state);
  std::int64_t changes_of_file();  // rank 0: so far, of which the first is that it is there
  void follow_file(std::int64_t step);
  std::string unreachable(const ps::ServerList& list) const;  // empty: all servers are there for this rank
  void warn(const std::string& why) const;

  Options options_;
  CommunicatorPtr group_;
  std::shared_ptr<ps::CurrentServers> servers_;
  DelayedVote vote_;
  std::chrono::steady_clock::time_point next_look_{};
  std::filesystem::file_time_type written_{};  // as it was seen last
  std::int64_t changes_ = 0;
  std::int64_t followed_ = 0;  // of the changes
  std::int64_t moves_ = 0;
};

}  // namespace phalanx
