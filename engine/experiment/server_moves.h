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

/// Moves a run to other parameter servers when the file that lists them changes (roles.servers_file).
///
/// Rank 0 looks at the file once a second. The ranks agree on a step by the same kind of vote that stops a run, and
/// then each of them tries to reach all new servers. If all succeed, all data that the run keeps on servers moves
/// between two steps (CurrentServers). Otherwise, and if the file cannot be read, the run warns and keeps its current
/// servers until the file changes again.
class ServerMoves {
 public:
  struct Options {
    std::string file;           // roles.servers_file; empty: the servers never change
    std::int64_t delay = 1;     // number of steps that the vote takes
    bool asynchronous = false;  // see DelayedVote
    bool shown = false;         // moves are reported on rank 0's standard output
  };

  /// All arguments must outlive the object. `servers` is null if the file is empty.
  ServerMoves(Options options, CommunicatorPtr group, std::shared_ptr<ps::CurrentServers> servers);

  /// Adds the hook, to the phase after those that use the servers.
  void attach(Engine& engine);

  std::int64_t moves() const { return moves_; }

 private:
  void after_step(const State& state);
  std::int64_t changes_of_file();  // on rank 0: so far; the appearance of the file is the first
  void follow_file(std::int64_t step);
  std::string unreachable(const ps::ServerList& list) const;  // empty: this rank reaches all
  void warn(const std::string& why) const;

  Options options_;
  CommunicatorPtr group_;
  std::shared_ptr<ps::CurrentServers> servers_;
  DelayedVote vote_;
  std::chrono::steady_clock::time_point next_look_{};
  std::filesystem::file_time_type written_{};  // modification time when the file was last looked at
  std::int64_t changes_ = 0;
  std::int64_t followed_ = 0;  // number of changes that were followed
  std::int64_t moves_ = 0;
};

}  // namespace phalanx
