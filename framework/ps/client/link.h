// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "framework/ps/client/connector.h"
#include "framework/ps/client/link_options.h"
#include "framework/ps/client/request.h"
#include "framework/ps/client/requests_in_flight.h"
#include "framework/ps/client/server_connection.h"
#include "framework/ps/client/shared_poller.h"
#include "framework/ps/client/table_versions.h"
#include "framework/ps/protocol/deadline.h"

namespace phalanx::ps {

/// A client's end of the connection to the server that leads one part of the tables. Thread-safe.
///
/// Its parts are the RequestsInFlight, the ServerConnection over which they travel, and a Connector, with which a
/// thread of the link re-establishes a broken connection (LinkOptions::retry) and then sends unanswered requests again.
/// An exchange therefore keeps a copy of its update, because the reply overwrites the tensor.
class Link {
 public:
  /// Connects to the server. Throws LinkOptions::lost() if it cannot be reached or refuses this client.
  explicit Link(const LinkOptions& options);

  /// Tells the server that the client leaves.
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  /// Assigns an id to the request and sends as much of it as the socket accepts at once.
  void send(const RequestPtr& request);

  /// Blocks until the request is finished and throws its error, if any.
  void wait(const RequestPtr& request);
  bool done(const RequestPtr& request);

  /// Registers the name of table `number`. If the server comes back after a restart, the link asks it for the version
  /// of every registered table.
  void register_table(std::uint32_t number, const std::string& name);
  void unregister_table(std::uint32_t number);
  void unregister_tables();

  /// Returns how many acknowledged updates of registered tables were lost because the server resumed from an older
  /// checkpoint. Only updates that this client knows of are counted.
  std::int64_t lost_updates();

 private:
  using TimePoint = Clock::time_point;

  // The last time without a connection.
  struct Outage {
    TimePoint lost_at = Clock::now();
    TimePoint give_up_at = TimePoint::max();  // deadline for the server to answer
    TimePoint ended_at{};
  };

  void leave();
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
