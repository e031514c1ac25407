// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "framework/ps/protocol/channel.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/replication/replica.h"

namespace phalanx::ps {

/// One server's membership of a chain. Owns the Replica and, while this server leads, the connections to the other
/// members, which threads establish and re-establish. Must be used only by the server's thread.
class Chain {
 public:
  struct Options {
    std::vector<std::string> members;  // addresses of each member, separated by commas
    int member = 0;                    // index of this server in `members`
    std::string secret;
    HostLimits limits;
    std::uint64_t start = 0;     // random number of the values, if they begin here
    Seconds failover{0};         // ClientOptions::failover of the chain's clients
    std::function<void()> wake;  // makes the server's thread call maintain_connections(); called from any thread
    std::function<void(int socket, bool added, bool writes)> watch;  // writes: there is data to write
    std::function<void(int member, Message reply)> to_leader;        // sends over the connection that `member` has made
  };

  explicit Chain(Options options);
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  Replica& replica() { return replica_; }
  const Options& options() const { return options_; }
  bool leads() const { return replica_.role() == Replica::Role::kLeader; }

  /// Handles a message from a member that leads or believes that it leads.
  void receive(int from, Message message);

  /// Handles an event on a socket that was given to `watch`. Returns false if the socket is not one of this chain's.
  bool serve(int socket);

  /// Takes over new connections and re-establishes broken ones. Must be called after every event.
  void maintain_connections();

  /// Returns the number of bytes queued for the member with the longest queue.
  std::size_t queued_bytes() const;

 private:
  struct Peer {
    std::unique_ptr<Channel> channel{};
    bool broken = false;
    bool writes = false;  // the value that `watch` was last called with
    std::jthread connecting{};
    bool is_connecting = false;
  };
  struct ConnectResult {
    int member;
    std::unique_ptr<Channel> channel;  // null: nothing listens at its addresses
  };

  void send(int member, ReplicaMessage message);
  void connect(int member, const std::stop_token& stop);
  void take_connect_results();
  void drop(int member);

  Options options_;
  std::vector<Peer> peers_;
  Replica replica_;
  std::mutex mutex_;  // protects connect_results_
  std::vector<ConnectResult> connect_results_;
};

}  // namespace phalanx::ps
