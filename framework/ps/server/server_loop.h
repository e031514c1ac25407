// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/keyed_hash.h"
#include "framework/ps/checkpoints/scheduled_checkpoints.h"
#include "framework/ps/protocol/deadline.h"
#include "framework/ps/protocol/greeting.h"
#include "framework/ps/replication/chain.h"
#include "framework/ps/server/event_poll.h"
#include "framework/ps/server/listeners.h"
#include "framework/ps/server/pending_handshakes.h"
#include "framework/ps/server/presence.h"
#include "framework/ps/server/server.h"
#include "framework/ps/server/session.h"

namespace phalanx::ps {

/// Parses the first 16 hexadecimal digits of a text.
std::uint64_t leading_number(const std::string& hexadecimal);

/// The event loop of a server's thread. It is implemented in several files: connections and timers (server_loop.cc),
/// accepting (server_accept.cc), admission (server_admission.cc) and requests (server_requests.cc).
class Server::Loop {
 public:
  explicit Loop(const ServerOptions& options);

  void run();
  void stop() const { poll_.stop(); }
  const std::vector<std::string>& addresses() const { return listeners_.addresses(); }
  void write_last_checkpoint();

  Presence& presence() { return presence_; }

 private:
  using SessionPtr = std::shared_ptr<Session>;
  using LostClient = std::pair<std::shared_ptr<Chain>, ClientId>;
  struct Membership {
    std::shared_ptr<Chain> chain{};
    bool was_leader = false;  // chain->leads() when chains were last tended
  };

  Clock::time_point next_due() const;
  void serve(int socket, std::uint32_t events);
  void run_timers();
  void update_chains();
  void accept_all(int listener);
  void add_session(Descriptor socket);
  bool make_room_for_handshake();
  void expire_handshakes();
  void finish_handshake(const SessionPtr& session);
  void expire_lost_clients();
  void serve(const SessionPtr& session, std::uint32_t events);
  void end(const SessionPtr& session, const std::string& why);
  bool is_presence(const std::string& job) const;
  void lose_process(const std::string& job, int number);
  void forget_clients(ShardHost& host, const std::shared_ptr<Chain>& chain, int number);
  Seconds grace_of(const Chain* chain) const;
  void answer(const SessionPtr& session, Message reply);

  void greet(const SessionPtr& session, const Message& message);
  void admit(const SessionPtr& session, const Message& message, Message& reply);
  void accept_greeting(const SessionPtr& session, const Greeting& greeting);
  void join_chain(Session& session, const Greeting& greeting);
  std::shared_ptr<Chain> chain_of(const Greeting& greeting);
  void end_former_connections(const Session& session);
  void handle(const SessionPtr& session, Message request);
  ShardHost& host_of(const Session& session) { return session.chain ? session.chain->replica().host() : host_; }
  static Message status_of(Chain& chain, const Header& request);
  Message status_of_all(const Header& request) const;
  void apply_event(Verb event, const std::shared_ptr<Chain>& chain, const ClientId& client);
  void send_to_leader(const Chain* chain, int member, Message reply);
  at::Tensor allocate_payload(Session& session, const Message& begun);
  void refuse_if_in_use(const Session& session) const;
  void fetch_payload(Session& session, Message& request);
  void send_values(const SessionPtr& session, const Header& request, Message reply, const at::Tensor& values);

  const ServerOptions options_;
  EventPoll poll_;
  ShardHost host_;
  std::unique_ptr<ScheduledCheckpoints> checkpoints_;  // null: none are written
  Listeners listeners_;
  PendingHandshakes handshakes_;
  std::map<int, SessionPtr> sessions_;                    // keyed by socket
  std::map<std::string, Membership> chains_;              // keyed by their members
  std::map<LostClient, Clock::time_point> lost_clients_;  // lost clients, and how long others wait for them
  std::set<int> lost_numbers_;                            // of clients whose processes are lost (presences)
  std::uint64_t start_ = leading_number(random_text());   // random number of this start of the server
  Presence presence_;
};

}  // namespace phalanx::ps
