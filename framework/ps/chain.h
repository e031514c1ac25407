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

#include "framework/ps/channel.h"
#include "framework/ps/deadline.h"
#include "framework/ps/replica.h"

namespace phalanx::ps {

/// A server's membership of one chain: its Replica, and while it leads the connections to the others, which threads
/// make and make again. For the server's thread.
class Chain {
 public:
  struct Options {
    std::vector<std::string> members;  // of each its addresses, separated by commas
    int member = 0;                    // which of them this server is
    std::string secret;
    HostLimits limits;
    std::uint64_t start = 0;     // of the values, where they begin here
    Seconds failover{0};         // of its clients
    std::function<void()> wake;  // makes the server's thread call tend(); from any thread
    std::function<void(int socket, bool added, bool writes)> watch;  // writes: whether there is something to write
    std::function<void(int member, Message reply)> to_leader;        // over the connection that this member has made
  };

  explicit Chain(Options options);
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  Replica& replica() { return replica_; }
  const Options& options() const { return options_; }
  bool leads() const { return replica_.role() == Replica::Role::kLeader; }

  /// What was said by a member that leads, or believes that it does.
  void receive(int from, Message message);

  /// Something has happened at a socket that was given to `watch`. False: it is none of this chain's.
  bool serve(int socket);

  /// Takes new connections, and makes those again that have broken. To be called after whatever has happened.
  void tend();

  /// Bytes that wait to be sent to another member.
  std::size_t queued_bytes() const;

 private:
  struct Peer {
    std::unique_ptr<Channel> channel{};
    bool broken = false;
    bool writes = false;  // as `watch` knows it
    std::jthread connecting{};
    bool is_connecting = false;
  };
  struct News {
    int member;
    std::unique_ptr<Channel> channel;  // null: nobody listens there
  };

  void send(int member, ReplicaMessage message);
  void connect(int member, const std::stop_token& stop);
  void take_news();
  void drop(int member);

  Options options_;
  std::vector<Peer> peers_;
  Replica replica_;
  std::mutex mutex_;  // of what follows
  std::vector<News> news_;
};

}  // namespace phalanx::ps
