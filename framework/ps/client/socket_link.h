// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "framework/ps/client/connector.h"
#include "framework/ps/client/link.h"
#include "framework/ps/client/link_options.h"
#include "framework/ps/client/request.h"
#include "framework/ps/client/requests_in_flight.h"
#include "framework/ps/client/server_connection.h"
#include "framework/ps/client/shared_poller.h"
#include "framework/ps/client/table_versions.h"
#include "framework/ps/protocol/deadline.h"

namespace phalanx::ps {

/// A link over a socket.
///
/// Its parts are the RequestsInFlight, the ServerConnection over which they travel, and a Connector, with which a
/// thread of the link re-establishes a broken connection (LinkOptions::retry) and then sends unanswered requests again.
/// An exchange therefore keeps a copy of its update, because the reply overwrites the tensor.
class SocketLink final : public Link {
 public:
  /// Connects to the server. Throws LinkOptions::lost() if it cannot be reached or refuses this client.
  explicit SocketLink(const LinkOptions& options);

  /// Tells the server that the client leaves (LinkOptions::leaves).
  ~SocketLink() override;

  void send(const RequestPtr& request) override;
  void wait(const RequestPtr& request) override;
  bool done(const RequestPtr& request) override;
  void register_table(std::uint32_t number, const std::string& name) override;
  void unregister_table(std::uint32_t number) override;
  void unregister_tables() override;
  std::int64_t lost_updates() override;
  bool is_lost() override;
  void leave() override;

 private:
  using TimePoint = Clock::time_point;

  // The last time without a connection.
  struct Outage {
    TimePoint lost_at = Clock::now();
    TimePoint give_up_at = TimePoint::max();  // deadline for the server to answer
    TimePoint ended_at{};
  };

  TimePoint deadline_of_wait(TimePoint end) const;
  void give_up_on(Request& request);

  void receive_replies();
  void take(Message reply);
  void poll_once(std::unique_lock<std::mutex>& lock, TimePoint deadline);
  void check_alive();

  void lose(const std::exception_ptr& error);
  void fail_all(const std::string& why);
  void reconnect(std::unique_lock<std::mutex>& lock);
  void resume_with(HandshakeResult server, const TableVersions& versions);
  void start_thread();
  void run();

  const LinkOptions options_;
  Connector connector_;  // used by the constructor and by thread_
  std::mutex mutex_;     // protects everything below except thread_
  std::condition_variable changed_;
  ServerConnection connection_;
  RequestsInFlight requests_;
  TableVersions versions_;
  Outage outage_;
  SharedPoller poller_;
  std::thread thread_;  // started with the lock held
};

}  // namespace phalanx::ps
