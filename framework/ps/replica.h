// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/ps/shard_host.h"

namespace phalanx::ps {

/// What the members of a chain say to each other about the part that they hold in common.
struct ReplicaMessage {
  enum class Kind : std::uint8_t {
    kInstall = 1,  // leader: become a copy of this state, and follow
    kApply,        // leader: the next request
    kApplied,      // follower: has it, up to `number`
    kRefused,      // follower: is no copy. Of a higher epoch: and nobody's who leads in an older one
  };
  Kind kind{};
  std::int64_t epoch = 0;
  std::int64_t number = 0;  // of requests applied
  std::uint64_t start = 0;  // of the values: kept by all who lead them in turn
  ClientId client{};        // kApply: who made the request
  Message request{};        // kApply: a request as it came, or kForgetReads and kStopWaiting, which no client sends
  bool refused = false;     // kApply: the leader has refused it
  HostState state{};        // kInstall
  std::string why{};        // kRefused
};

/// One of the servers that hold the same part of the tables, so that it outlives them all but one: replication by a
/// leader that applies every request and forwards it, in this order, to the others (followers), as in primary-backup
/// replication and chain replication with two members (van Renesse & Schneider 2004, Chain Replication for Supporting
/// High Throughput and Availability, OSDI). Bytes on the wire for each request: what it sent of its values and 200 or
/// so, to each follower. Knows nothing of connections, and is not thread-safe.
///
/// Requests: all but questions are forwarded, reads too, since a read may change what a rule or the eviction of rows
/// remembers. Every member carries out the same requests in the same order with the same code, so their values are
/// equal bit for bit. The leader gives out no reply before every member in its view has applied all that it had applied
/// when it computed the reply.
///
/// Epochs: whoever begins to lead does so in an epoch that nobody else ever leads in (of M members, member m in those
/// that are m modulo M), higher than all that it has seen. A member that has seen an epoch obeys no leader of an older
/// one, and tells it so, which then leads no more. The view of a leader begins with all other members, but for the
/// leader that it takes over from. One leaves it only by being known not to be a copy: its process has ended (whoever
/// listens at its address later begins with nothing), or it says so itself. It enters it when a state is sent to it.
///
/// Why no acknowledged update is lost, and none that was read: a reply was given out when all of the leader's view had
/// applied what it tells of. Whoever takes over is a copy, hence was in the view of every leader that it followed, or
/// has been given a state by one that came later. So it holds all that such a reply tells of. Why there are not two
/// histories: the old leader, if it lives after all, gives out no reply without the member that took over, which
/// refuses it. Two members that take over from the same leader are in each other's views: the one with the lower epoch
/// gives out nothing, and gives way. Why nothing is applied twice: ShardHost's last request of each client is part of
/// what is replicated, and clients send unanswered requests again with the same numbers. Waiting reads of ssp and
/// sync_ps are asked again by their clients; clocks are replicated.
///
/// Only chains of two are in use: with three, where two take over at once, the argument above does not hold in every
/// order of events.
///
/// No quorum and no outside judge is needed, at a price: a member that can neither be reached nor is known to have
/// ended (its host is silent) stays in the view, and its leader gives out nothing until it is back. See
/// stop_counting_on().
class Replica {
 public:
  enum class Role {
    kBlank,     // no copy
    kFollower,  // a copy
    kLeader,
  };

  /// To another member, over a connection on which messages arrive in order, or not at all. May not call back.
  using Send = std::function<void(int member, ReplicaMessage message)>;

  /// `start`: of the values, where they begin here.
  Replica(int member, int members, HostLimits limits, std::uint64_t start, Send send);

  Role role() const { return role_; }
  int member() const { return member_; }
  int members() const { return static_cast<int>(peers_.size()); }
  std::int64_t epoch() const { return epoch_; }
  std::uint64_t start() const { return start_; }
  ShardHost& host() { return *host_; }
  const ShardHost& host() const { return *host_; }

  /// Leads a part that has nothing in it yet. Only the first member, and only if it has never heard of another leader.
  /// False: it may not.
  bool begin();

  /// A client has lost the leader: a follower leads from now on. False: this member has no copy.
  bool take_over();

  // ---- of a leader

  /// Carries out a request here, and sends it to the others. `answer` as that of ShardHost::handle().
  void submit(const ClientId& client, const Message& request, const ShardHost::Answer& answer);

  /// Calls `give_out` once the view has applied all that this member has by now; never, if it does not lead until then.
  void when_applied(std::function<void()> give_out);

  /// There is a new connection to this member: it is sent the state.
  void connected(int member);

  /// The connection has broken; the member still counts.
  void disconnected(int member);

  /// The member's process has ended.
  void ended(int member) { stop_counting_on(member); }

  bool counts_on(int member) const { return peers_[member].counts; }

  /// Its copy is not waited for any more. Only for what is known to lead nobody ever again.
  void stop_counting_on(int member);

  /// Members of the view that have not yet applied what this one has.
  std::vector<int> awaited() const;
  std::size_t held() const { return held_.size(); }

  /// Servers, with this one, that hold the same as this one.
  int copies() const { return 1 + static_cast<int>(counted() - awaited().size()); }

  // ----

  void receive(int from, const ReplicaMessage& message);

 private:
  std::size_t counted() const;

  struct Peer {
    bool counts = false;  // is in the view
    bool connected = false;
    std::int64_t applied = -1;
  };

  void lead(std::int64_t epoch);
  void become_blank(std::int64_t epoch);
  void refuse(int to, const std::string& why);
  void install(int from, const ReplicaMessage& message);
  void apply(int from, const ReplicaMessage& message);
  bool carry_out(const ClientId& client, const Message& request, const ShardHost::Answer& answer);
  void give_out();

  int member_;
  HostLimits limits_;
  Send send_;
  Role role_ = Role::kBlank;
  std::int64_t epoch_ = -1;  // the highest seen
  int leader_ = -1;          // of a follower
  std::uint64_t start_;
  std::unique_ptr<ShardHost> host_;
  std::int64_t applied_ = 0;
  std::vector<Peer> peers_;                                          // by member; its own is not used
  std::deque<std::pair<std::int64_t, std::function<void()>>> held_;  // by applied_ when they came
};

}  // namespace phalanx::ps
