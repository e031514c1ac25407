// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "framework/base/descriptor.h"
#include "launch/agents/host_ranks.h"
#include "launch/agents/join_port.h"
#include "launch/agents/join_protocol.h"

namespace phalanx {

/// The processes of hosts that join a job, at most, in the whole job: numbers are never used again.
inline constexpr int kMostJoined = 1000;

/// Decides which hosts join a running job (faults.max_ranks), and answers them. Belongs to the launcher. Not
/// thread-safe.
class Joins {
 public:
  struct Options {
    JoinPort::Options port{};
    int max_ranks = 0;
    std::string token_file{};  // a file that only hosts with the file system of the job see; must not exist

    /// Returns the number of processes that are about to be started, as in the places of lost ranks. No host joins in
    /// their places.
    std::function<int()> expected{};

    /// Returns what an agent needs on any host: see JoinAnswer. The token is added.
    std::function<JoinAnswer()> answer{};

    /// Makes a host one of the job, with an agent at this connection, which gets `answer` first, and starts ranks
    /// there. If it throws Error, the host does not join.
    std::function<void(const JoinRequest& request, const Descriptor& socket, const std::string& answer)> join{};
  };

  /// `ranks` must outlive the object. Throws what JoinPort() throws, and Error if the token cannot be written.
  Joins(const HostRanks& ranks, Options options);

  std::string invitation() const { return port_.invitation(); }

  /// Answers the next host that asks: the ranks of each one are counted before the next one is answered. Does not
  /// block. To be called every 50 ms or so. Throws CommError::kSystem if the port fails.
  void look();

 private:
  int room() const { return options_.max_ranks - ranks_.running() - options_.expected(); }
  std::string why_not(const JoinRequest& request) const;
  void take(JoinPort::Peer peer);
  static void refuse(const JoinPort::Peer& peer, const std::string& why);

  const HostRanks& ranks_;
  Options options_;
  JoinPort port_;
  std::string token_;
  int joined_ = 0;
};

}  // namespace phalanx
