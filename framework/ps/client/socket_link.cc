// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/client/socket_link.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/ps/protocol/checksum.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kLeaveTimeout(1);                  // for a server to confirm that we leave
constexpr std::chrono::microseconds kReplySpin(50);  // time to poll for a reply before sleeping
constexpr std::uint64_t kMinBytesForThread = 65536;  // above this size, a thread moves values through the socket
constexpr Seconds kReconnectAttempt(5);              // time limit for an attempt to reconnect
constexpr std::chrono::milliseconds kBetweenReconnects(100);

std::string what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& cause) {
    return cause.what();
  }
}

// Returns how the values of an answer were damaged, or an empty string. An answer without a checksum is refused if the
// request asked for one: the flag itself may have been damaged.
std::string damage_to(const Request& request, const Header& reply) {
  if (request.message.header.summed() && request.transfer.returned > 0 && !reply.summed()) {
    return std::string("its answer was damaged on the way: it has no checksum, although the request asked for one") +
           kWhatDamages;
  }
  return damage_of(reply, returned_to(request));
}

std::string seconds_text(Seconds seconds) { return format_text("%g", seconds.count()) + " s"; }

}  // namespace

// The connector's channels call the function with the lock held, once they belong to the link.
SocketLink::SocketLink(const LinkOptions& options)
    : options_(options),
      connector_(options, [this](const Message& begun) { return requests_.memory_for(begun); }),
      connection_(options.replicated(), options.failover, options.checksums) {
  connection_.open(connector_.connect_first());
  if (!connection_.reaches_memory() && connection_.address().starts_with("unix:")) {
    log_info() << "parameter server " << connection_.address()
               << " cannot reach the memory of this process: values travel through the socket";
  }
}

SocketLink::~SocketLink() {
  if (options_.leaves) leave();
  {
    const std::lock_guard lock(mutex_);
    connector_.stop();
    requests_.keep_shared_memory();
  }
  changed_.notify_all();
  poller_.interrupt();
  if (thread_.joinable()) thread_.join();
}

// Tells the server that the client leaves. Otherwise the server would wait for the grace time.
void SocketLink::leave() {
  auto request = std::make_shared<Request>();
  request->message.header.verb = Verb::kLeave;
  request->what = "leaving";
  {
    const std::lock_guard lock(mutex_);
    if (requests_.failed() || !connection_.is_open()) return;
  }
  send(request);
  const auto deadline = after(kLeaveTimeout);
  std::unique_lock lock(mutex_);
  while (!request->finished && connection_.is_open() && Clock::now() < deadline) poll_once(lock, deadline);
}

void SocketLink::register_table(std::uint32_t number, const std::string& name) {
  const std::lock_guard lock(mutex_);
  versions_.add(number, name);
}

void SocketLink::unregister_table(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  versions_.remove(number);
}

void SocketLink::unregister_tables() {
  const std::lock_guard lock(mutex_);
  versions_.clear();
}

std::int64_t SocketLink::lost_updates() {
  const std::lock_guard lock(mutex_);
  return versions_.lost_updates();
}

bool SocketLink::is_lost() {
  const std::lock_guard lock(mutex_);
  if (!poller_.is_polling()) receive_replies();
  return requests_.failed();
}

void SocketLink::send(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  const Transfer& transfer = request->transfer;
  if (options_.reconnects() && transfer.sent > transfer.returned_at && transfer.returned > 0) {
    request->update = byte_range(request->tensor, 0, transfer.sent).clone();
  }
  if (!requests_.add(request)) return;
  if (connection_.is_open()) {
    try {
      connection_.transmit(*request);
    } catch (const std::exception&) {
      lose(std::current_exception());
    }
  }
  const bool streams =
      !request->message.header.in_memory() && std::max(transfer.sent, transfer.returned) > kMinBytesForThread;
  if (streams) {
    start_thread();
    changed_.notify_all();
  }
  // The polling thread does not know about the output yet.
  if (poller_.is_polling() && connection_.is_open() && connection_.channel().has_output()) poller_.interrupt();
}

bool SocketLink::done(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  if (!request->finished && !poller_.is_polling()) receive_replies();
  return request->finished;
}

void SocketLink::wait(const RequestPtr& request) {
  const auto end = after(options_.timeout), spin_end = Clock::now() + kReplySpin;
  std::unique_lock lock(mutex_);
  while (!request->finished) {
    if (Clock::now() < spin_end && !poller_.is_polling()) {
      receive_replies();
      if (request->finished) break;
      lock.unlock();
      ::sched_yield();
      lock.lock();
      continue;
    }
    const auto deadline = deadline_of_wait(end);
    if (Clock::now() >= deadline) {
      give_up_on(*request);
    } else if (options_.replicated()) {
      check_alive();
      poll_once(lock, std::min(deadline, after(options_.failover / 4)));
    } else {
      poll_once(lock, deadline);
    }
  }
  if (const auto error = std::exchange(request->error, nullptr)) std::rethrow_exception(error);
}

// While there is no connection, the reconnecting thread decides when to give up.
SocketLink::TimePoint SocketLink::deadline_of_wait(TimePoint end) const {
  if (connection_.is_open()) return std::max(end, outage_.ended_at + duration_of(options_.timeout));
  return outage_.give_up_at + duration_of(kReconnectAttempt + options_.timeout);
}

void SocketLink::give_up_on(Request& request) {
  requests_.keep_shared_memory();
  fail_all("no answer to " + request.what + " within " + seconds_text(options_.timeout));
  request.error = std::make_exception_ptr(
      CommError(CommError::Kind::kTimeout, request.what + ": parameter server " + connection_.address() +
                                               " did not answer within " + seconds_text(options_.timeout)));
}

// Does everything that is possible without waiting. The lock must be held, as for the following functions.
void SocketLink::receive_replies() {
  if (requests_.failed() || !connection_.is_open()) return;
  try {
    connection_.channel().flush();
    while (auto reply = connection_.channel().receive()) take(*std::move(reply));
  } catch (const std::exception&) {
    lose(std::current_exception());
  }
}

void SocketLink::take(Message reply) {
  const RequestPtr request = requests_.remove(reply.header.id);
  connection_.record_reply();
  outage_.give_up_at = TimePoint::max();
  if (reply.header.status == Status::kRefused) {
    request->error = std::make_exception_ptr(
        Error(request->what + ": parameter server " + connection_.address() + " refused it: " + reply.text));
  } else if (const auto damage = damage_to(*request, reply.header); !damage.empty()) {
    request->error = std::make_exception_ptr(CommError(
        CommError::Kind::kSystem, request->what + ": parameter server " + connection_.address() + ": " + damage));
  } else {
    versions_.advance(reply.header.table, reply.header.version);
    request->done(reply.header);
  }
  request->reply = std::move(reply);
  request->finished = true;
}

// One thread waits at the socket, and the others wait for that thread.
void SocketLink::poll_once(std::unique_lock<std::mutex>& lock, TimePoint deadline) {
  if (poller_.is_polling() || !connection_.is_open()) {
    changed_.wait_until(lock, deadline);
    return;
  }
  if (poller_.poll(lock, connection_.channel(), deadline)) receive_replies();
  changed_.notify_all();
}

void SocketLink::check_alive() {
  if (!connection_.is_open()) return;
  try {
    const RequestPtr ping = connection_.due_ping();
    if (ping && requests_.add(ping)) connection_.transmit(*ping);
  } catch (const std::exception&) {
    lose(std::current_exception());
  }
}

// Handles a broken connection.
void SocketLink::lose(const std::exception_ptr& error) {
  if (!options_.reconnects() || connector_.stopping()) return fail_all(what_of(error));
  log_warning() << "parameter server " << connection_.address() << " is lost (" << what_of(error)
                << "): connecting again for " << seconds_text(options_.retry);
  connection_.close();
  outage_.lost_at = Clock::now();
  outage_.give_up_at = std::min(outage_.give_up_at, after(options_.retry));
  start_thread();
  changed_.notify_all();
}

void SocketLink::fail_all(const std::string& why) {
  requests_.fail([&](const std::string& beginning) {
    return options_.lost(beginning + "parameter server " + connection_.address() + " is lost: " + why);
  });
  changed_.notify_all();
}

// Makes one attempt to reconnect, without the lock. Runs in the link's own thread.
void SocketLink::reconnect(std::unique_lock<std::mutex>& lock) {
  TableVersions versions = versions_;
  const Outage outage = outage_;
  const auto deadline =
      options_.replicated() ? outage.give_up_at : std::min(outage.give_up_at, after(kReconnectAttempt));
  const auto former_start = connection_.start();
  lock.unlock();
  std::optional<HandshakeResult> server;
  std::string failure;
  bool is_final = false;
  try {
    HandshakeResult greeted = connector_.connect(outage.lost_at, deadline);
    if (greeted.start != former_start) versions.ask(*greeted.channel, deadline, connector_.stopping());
    server = std::move(greeted);
  } catch (const TableMissing& error) {
    failure = error.what();
    is_final = true;
  } catch (const AllHaveEnded& error) {
    failure = error.what();
    is_final = true;
  } catch (const std::exception& error) {
    failure = error.what();
  }
  lock.lock();
  if (server) return resume_with(*std::move(server), versions);
  if (is_final) return fail_all(failure);
  if (Clock::now() >= outage_.give_up_at) {
    return fail_all("it has not come back within " + seconds_text(options_.retry) + ": " + failure);
  }
  changed_.wait_for(lock, kBetweenReconnects, [this] { return connector_.stopping().load(); });
}

// Starts to use a new connection and sends the requests in flight again.
void SocketLink::resume_with(HandshakeResult server, const TableVersions& versions) {
  const std::int64_t lost = versions.lost_updates() - versions_.lost_updates();
  versions_.merge(versions);
  if (lost > 0) {
    log_warning() << "parameter server " << server.address << " has resumed from a checkpoint: " << lost
                  << " acknowledged updates are lost";
  }
  connection_.open(std::move(server));
  outage_.ended_at = Clock::now();
  log_info() << "parameter server " << connection_.address() << " is back: " << requests_.size()
             << " requests are sent again";
  try {
    requests_.for_each([this](Request& request) {
      if (request.update.defined()) byte_range(request.tensor, 0, request.transfer.sent).copy_(request.update);
      connection_.transmit(request);
    });
  } catch (const std::exception&) {
    lose(std::current_exception());
  }
  changed_.notify_all();
}

void SocketLink::start_thread() {
  if (thread_.joinable() || connector_.stopping()) return;
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

// Reconnects, and moves data through the connection while no other thread waits.
void SocketLink::run() {
  std::unique_lock lock(mutex_);
  const auto must_reconnect = [this] { return !connection_.is_open() && !requests_.failed(); };
  try {
    while (!connector_.stopping()) {
      if (must_reconnect()) {
        reconnect(lock);
      } else if (requests_.empty()) {
        changed_.wait(lock, [&] { return connector_.stopping() || !requests_.empty() || must_reconnect(); });
      } else {
        poll_once(lock, after(Seconds(1)));
      }
    }
  } catch (const std::exception& error) {
    if (!lock.owns_lock()) lock.lock();
    fail_all(error.what());  // waiting threads throw it
  }
}

}  // namespace phalanx::ps
