// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/descriptor.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/seldom.h"
#include "framework/ps/chain.h"
#include "framework/ps/deadline.h"
#include "framework/ps/greeting.h"
#include "framework/ps/presence.h"
#include "framework/ps/scheduled_checkpoints.h"
#include "framework/ps/server.h"
#include "framework/ps/session.h"

namespace phalanx::ps {

/// Parses the first 16 hexadecimal digits of a text.
std::uint64_t leading_number(const std::string& hexadecimal);

/// The event loop of a server's thread. It is implemented in several files: connections and timers (server_loop.cc),
/// accepting (server_accept.cc), admission (server_admission.cc) and requests (server_requests.cc).
class Server::Loop {
 public:
  explicit Loop(const ServerOptions& options);

  void run();
  void stop() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));  // a counter of 0 has room for one more
  }
  const std::vector<std::string>& addresses() const { return addresses_; }
  void write_last_checkpoint();

  Presence& presence() { return presence_; }

 private:
  using SessionPtr = std::shared_ptr<Session>;

  void watch(int socket, std::uint32_t events, int how);
  int wait_for_events(std::array<epoll_event, 64>& events) const;
  void do_what_is_due();
  void tend_chains();
  void accept_all(int listener);
  void add_session(Descriptor socket);
  bool make_room_for_stranger();
  void pause_accepting(Clock::time_point until, const std::string& why);
  void tend_strangers();
  void no_longer_stranger(const SessionPtr& session);
  Clock::time_point greeting_due(const Session& stranger) const;
  void tend_away();
  void serve(const SessionPtr& session, std::uint32_t events);
  void end(const SessionPtr& session, const std::string& why);
  Seconds grace_of(const Chain* chain) const;
  void answer(const SessionPtr& session, Message reply);

  void greet(const SessionPtr& session, const Message& message);
  void admit(const SessionPtr& session, const Message& message, Message& reply);
  void take_in(const SessionPtr& session, const Greeting& greeting);
  void join_chain(Session& session, const Greeting& greeting);
  std::shared_ptr<Chain> chain_of(const Greeting& greeting);
  void welcome(const Session& session);
  void handle(const SessionPtr& session, Message request);
  ShardHost& host_of(const Session& session) { return session.chain ? session.chain->replica().host() : host_; }
  static Message status_of(Chain& chain, const Header& request);
  Message status_of_all(const Header& request) const;
  void happens(Verb event, const std::shared_ptr<Chain>& chain, const ClientId& client);
  void send_to_leader(const Chain* chain, int member, Message reply);
  at::Tensor make_room(Session& session, const Message& begun);
  void refuse_if_in_use(const Session& session) const;
  void fetch_payload(Session& session, Message& request);
  void give_values(const SessionPtr& session, const Header& request, Message reply, const at::Tensor& values);

  ServerOptions options_;
  std::vector<Descriptor> listeners_;
  std::vector<std::string> addresses_;
  Descriptor wake_, news_, epoll_;  // news_: signals events from a chain's threads
  ShardHost host_;
  std::map<int, SessionPtr> sessions_;                          // keyed by socket
  std::deque<SessionPtr> strangers_;                            // not identified yet; oldest first
  Clock::time_point accepts_again_ = Clock::time_point::max();  // when accepting resumes; max: accepting
  Seldom log_pauses_{Seconds(60)}, log_strangers_{Seconds(1)};
  std::map<std::string, std::shared_ptr<Chain>> chains_;  // keyed by their members
  std::map<const Chain*, bool> led_;                      // leads() of each chain when chains were last tended
  using Away = std::pair<std::shared_ptr<Chain>, ClientId>;
  std::map<Away, Clock::time_point> away_;               // lost clients, and how long others wait for them
  std::uint64_t start_ = leading_number(random_text());  // random number of this start of the server
  std::unique_ptr<ScheduledCheckpoints> checkpoints_;
  Presence presence_;
};

}  // namespace phalanx::ps
