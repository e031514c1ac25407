// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/ps/shards/shard_host.h"

namespace phalanx::ps {

/// The messages that members of a chain exchange about the part of the tables that they share.
struct ReplicaMessage {
  enum class Kind : std::uint8_t {
    kInstall = 1,  // leader: become a copy of this state, and follow
    kApply,        // leader: the next request
    kApplied,      // follower: has applied all requests up to `number`
    kRefused,      // follower: is not a copy. With a higher epoch: the receiver must stop leading
  };
  Kind kind{};
  std::int64_t epoch = 0;
  std::int64_t number = 0;  // number of requests applied
  std::uint64_t start = 0;  // random number of the values: kept by all members that lead them in turn
  ClientId client{};        // kApply: the client that made the request
  Message request{};        // kApply: a client's request, or kForgetReads or kStopWaiting, which clients never send
  bool refused = false;     // kApply: the leader has refused it
  HostState state{};        // kInstall
  std::string why{};        // kRefused
};

/// One of the servers that hold the same part of the tables, so that the part survives as long as one of them does. The
/// leader applies every request and forwards it to the other members (followers) in the same order, as in
/// primary-backup replication and in chain replication with two members (van Renesse & Schneider 2004, Chain
/// Replication for Supporting High Throughput and Availability, OSDI). Bytes on the wire per request and follower: the
/// values that the request sent, and about 200. Does not handle connections. Not thread-safe.
///
/// Requests: all requests except queries are forwarded. Reads are forwarded too, since a read may change the state of a
/// rule or which row is evicted next. Every member carries out the same requests in the same order with the same code,
/// so their values are bitwise equal. The leader releases a reply only when every member in its view has applied all
/// requests that the leader had applied when it computed the reply.
///
/// Epochs: each time a member begins to lead, it chooses an epoch higher than all that it has seen, in which no other
/// member ever leads (of M members, member m leads in epochs equal to m modulo M). A member that has seen an epoch
/// rejects the messages of a leader of an older epoch and reports the newer one, whereupon that leader stops leading.
/// The view of a new leader contains all other members, except for the leader from which it takes over. A member leaves
/// the view only when it is known not to be a copy: its process has ended (another process that listens at its address
/// later begins with nothing), or it reports this itself. It enters the view when a state is sent to it.
///
/// Why no acknowledged or visible update is lost: a reply is released only when the whole view of the leader has
/// applied what the reply depends on. A member that takes over is a copy. It was therefore in the view of every leader
/// that it followed, or has received its state from a later one, so it has everything that such a reply depends on.
///
/// Why there are never two histories: if the old leader is still alive, it releases no reply without the member that
/// took over, and this member rejects it. Two members that take over from the same leader are in each other's view. The
/// one with the lower epoch releases nothing and stops leading.
///
/// Why no update is applied twice: the last request of each client in ShardHost is part of the replicated state, and
/// clients resend unanswered requests with the same numbers. Waiting reads of ssp and sync_ps are repeated by their
/// clients. Clocks are replicated.
///
/// Only chains of two are used. With three members, if two of them take over at the same time, the argument above does
/// not hold for every order of events.
///
/// The protocol needs neither a quorum nor an external arbiter. The price is that a member that cannot be reached, but
/// is not known to have ended (its host is silent), stays in the view, and its leader releases no replies until it is
/// back. See remove_from_view().
class Replica {
 public:
  enum class Role {
    kBlank,     // has no copy
    kFollower,  // has a copy
    kLeader,
  };

  /// Sends a message to another member, over a connection on which messages arrive in order or not at all. Must not
  /// call back.
  using Send = std::function<void(int member, ReplicaMessage message)>;

  /// `start` is the random number of the values, if they begin at this member.
  Replica(int member, int members, HostLimits limits, std::uint64_t start, Send send);

  Role role() const { return role_; }
  int member() const { return member_; }
  int members() const { return static_cast<int>(peers_.size()); }
  std::int64_t epoch() const { return epoch_; }
  std::uint64_t start() const { return start_; }
  ShardHost& host() { return *host_; }
  const ShardHost& host() const { return *host_; }

  /// Starts leading a part that is still empty. Only the first member can do this, and only if it has never heard from
  /// another leader; otherwise returns false.
  bool begin();

  /// Makes a follower the leader, because a client has lost the current leader. Returns false if this member has no
  /// copy.
  bool take_over();

  // ---- For a leader:

  /// Carries out a request and forwards it to the other members. `answer` is called as in ShardHost::handle().
  void submit(const ClientId& client, const Message& request, const ShardHost::Answer& answer);

  /// Calls `release_replies` once all members in the view have applied the requests that this member has applied so
  /// far. Never calls it if this member stops leading before that.
  void when_applied(std::function<void()> release_replies);

  /// Sends the state to a member, to which there is a new connection.
  void connected(int member);

  /// Records that the connection to a member has broken. The member stays in the view.
  void disconnected(int member);

  /// Records that the process of a member has ended.
  void ended(int member) { remove_from_view(member); }

  bool is_in_view(int member) const { return peers_[member].in_view; }

  /// Removes a member from the view. Must be called only if the member will never lead again.
  void remove_from_view(int member);

  /// Returns the members of the view that have not yet applied everything that this member has applied.
  std::vector<int> lagging_members() const;
  std::size_t held() const { return held_replies_.size(); }

  /// Returns the number of servers, including this one, that hold the same values as this one.
  int copies() const { return 1 + static_cast<int>(view_size() - lagging_members().size()); }

  // ----

  void receive(int from, const ReplicaMessage& message);

 private:
  std::size_t view_size() const;

  struct Peer {
    bool in_view = false;  // is in the view
    bool connected = false;
    std::int64_t applied = -1;
  };

  void lead(std::int64_t epoch);
  void become_blank(std::int64_t epoch);
  void refuse(int to, const std::string& why);
  void install(int from, const ReplicaMessage& message);
  void apply(int from, const ReplicaMessage& message);
  bool execute(const ClientId& client, const Message& request, const ShardHost::Answer& answer);
  void release_replies();

  int member_;
  HostLimits limits_;
  Send send_;
  Role role_ = Role::kBlank;
  std::int64_t epoch_ = -1;  // the highest epoch seen
  int leader_ = -1;          // follower: the member that it follows
  std::uint64_t start_;
  std::unique_ptr<ShardHost> host_;
  std::int64_t applied_ = 0;
  std::vector<Peer> peers_;  // indexed by member; the own entry is not used
  std::deque<std::pair<std::int64_t, std::function<void()>>> held_replies_;  // replies, by applied_ at the time
};

}  // namespace phalanx::ps
