// SPDX-License-Identifier: Apache-2.0
#include "framework/ps/link.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/error.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/text.h"
#include "framework/comm/part_layout.h"
#include "framework/ps/server_lost.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kFarewell(1);                 // for a server to confirm that we leave
constexpr std::chrono::microseconds kSpin(50);  // time to poll for a reply before sleeping
constexpr std::uint64_t kSmall = 4096;          // up to this size, values travel through the connection
constexpr std::uint64_t kWorthAThread = 65536;  // above this size, a thread moves values through the socket

// Never frees the request: a server that wakes up after we have given up on it would write into its memory, which must
// therefore never be reused.
void keep_for_good(Link::RequestPtr request) { new Link::RequestPtr(std::move(request)); }

}  // namespace

Link::Link(const Options& options)
    : options_(options), incarnation_(random_text().substr(0, 16)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_.valid()) throw Error(std::string("cannot connect to a parameter server: ") + std::strerror(errno));
  go_on_with(connect_first());
  if (!reaches_memory_ && address_.starts_with("unix:")) {
    log_info() << "parameter server " << address_
               << " cannot reach the memory of this process: values travel through the socket";
  }
}

Link::~Link() {
  leave();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, request] : in_flight_) {
      if (request->message.header.in_memory()) keep_for_good(request);
    }
  }
  moved_.notify_all();
  wake_poller();
  if (thread_.joinable()) thread_.join();
}

// Tells the server that the client leaves. Otherwise the server would wait for the grace time.
void Link::leave() {
  auto request = std::make_shared<Request>();
  request->message.header.verb = Verb::kLeave;
  request->what = "leaving";
  {
    const std::lock_guard lock(mutex_);
    if (broken_ || !channel_) return;
  }
  send(request);
  const auto deadline = after(kFarewell);
  std::unique_lock lock(mutex_);
  while (!request->finished && channel_ && Clock::now() < deadline) poll_once(lock, deadline);
}

void Link::wake_poller() {
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));  // a counter of 0 has room for one more
}

// Returns the error for requests that wait for a lost server: a ServerLost with Options::retry.
std::exception_ptr Link::lost(const std::string& message) const {
  if (options_.retry > Seconds(0)) return std::make_exception_ptr(ServerLost(message));
  return std::make_exception_ptr(CommError(CommError::Kind::kPeerLost, message));
}

std::string Link::what_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& cause) {
    return cause.what();
  }
}

at::Tensor Link::bytes_of(const at::Tensor& tensor, std::uint64_t begin, std::uint64_t count) {
  const auto size = static_cast<std::uint64_t>(tensor.element_size());
  return elements_of(tensor, static_cast<std::int64_t>(begin / size), static_cast<std::int64_t>(count / size));
}

void Link::know_table(std::uint32_t number, const std::string& name) {
  const std::lock_guard lock(mutex_);
  tables_.try_emplace(number, Known{name});
}

void Link::forget_table(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  tables_.erase(number);
}

void Link::forget_tables() {
  const std::lock_guard lock(mutex_);
  tables_.clear();
}

std::int64_t Link::lost_updates() {
  const std::lock_guard lock(mutex_);
  return lost_updates_;
}

void Link::start_thread() {
  if (thread_.joinable() || stopping_) return;
  const BlockedSignals blocked;
  thread_ = std::thread([this] { run(); });
}

void Link::send(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  if (broken_) {
    request->finished = true;
    request->error = broken_;
    return;
  }
  const Transfer& transfer = request->transfer;
  request->message.header.id = next_id_++;
  if (options_.retry > Seconds(0) && transfer.sent > transfer.returned_at && transfer.returned > 0) {
    request->update = bytes_of(request->tensor, 0, transfer.sent).clone();
  }
  in_flight_.emplace(request->message.header.id, request);
  if (channel_) {
    try {
      transmit(request);
    } catch (const std::exception&) {
      lose(std::current_exception());
    }
  }
  const bool streams =
      !request->message.header.in_memory() && std::max(transfer.sent, transfer.returned) > kWorthAThread;
  if (streams) {
    start_thread();
    moved_.notify_all();
  }
  if (polling_ && channel_ && channel_->has_output()) wake_poller();  // tell it about the output
}

// Sends a request over the connection. The lock must be held.
void Link::transmit(const RequestPtr& request) {
  Message sent{.header = request->message.header, .text = request->message.text};
  const at::Tensor& tensor = request->tensor;
  const Transfer& transfer = request->transfer;
  sent.header.flags &= static_cast<std::uint8_t>(~kInMemory);  // this may differ from an earlier transmission
  sent.header.address = 0;
  if (tensor.defined()) {
    sent.header.dtype = static_cast<std::uint8_t>(transfer.dtype);
    sent.header.payload_bytes = transfer.sent;
    // A leader that was wrongly believed lost must not write into memory that is no longer expecting it.
    const bool may_write = !options_.replicated() || transfer.returned == 0;
    if (reaches_memory_ && may_write && std::max(transfer.sent, transfer.returned) > kSmall) {
      sent.header.flags |= kInMemory;
      sent.header.address = reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr());
    } else if (transfer.sent > 0) {
      sent.payload = bytes_of(tensor, 0, transfer.sent);
    }
  }
  request->message.header = sent.header;
  channel_->send(std::move(sent));
}

bool Link::done(const RequestPtr& request) {
  const std::lock_guard lock(mutex_);
  if (!request->finished && !polling_) move_on();
  return request->finished;
}

// Does everything that is possible without waiting. The lock must be held.
void Link::move_on() {
  if (broken_ || !channel_) return;
  try {
    channel_->flush();
    while (auto reply = channel_->receive()) take(*std::move(reply));
  } catch (const std::exception&) {
    lose(std::current_exception());
  }
}

void Link::take(Message reply) {
  const auto found = in_flight_.find(reply.header.id);
  if (found == in_flight_.end()) throw ConnectionError("the server answered a request that was not made");
  const RequestPtr request = found->second;
  in_flight_.erase(found);
  heard_at_ = Clock::now();
  give_up_at_ = TimePoint::max();
  if (reply.header.status == Status::kRefused) {
    request->error =
        std::make_exception_ptr(Error(request->what + ": parameter server " + address_ + " refused it: " + reply.text));
  } else {
    if (const auto table = tables_.find(reply.header.table); table != tables_.end()) {
      table->second.version = std::max(table->second.version, reply.header.version);
    }
    request->done(reply.header);
  }
  request->reply = std::move(reply);
  request->finished = true;
}

void Link::fail_all(const std::exception_ptr& error) {
  const std::string why = what_of(error);
  broken_ = lost("parameter server " + address_ + " is lost: " + why);
  for (const auto& [id, request] : in_flight_) {
    request->error = lost(request->what + ": parameter server " + address_ + " is lost: " + why);
    request->finished = true;
  }
  in_flight_.clear();
  moved_.notify_all();
}

// One thread waits at the socket, and the others wait for that thread.
void Link::poll_once(std::unique_lock<std::mutex>& lock, Clock::time_point deadline) {
  if (polling_ || !channel_) {
    moved_.wait_until(lock, deadline);
    return;
  }
  std::array<pollfd, 2> ready{
      pollfd{channel_->socket(), static_cast<short>(channel_->has_output() ? POLLIN | POLLOUT : POLLIN), 0},
      pollfd{wake_.get(), POLLIN, 0}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  polling_ = true;
  lock.unlock();
  const int count = ::poll(ready.data(), ready.size(), static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 1000)));
  lock.lock();
  polling_ = false;
  if (std::uint64_t woken = 0; ready[1].revents != 0) (void)!::read(wake_.get(), &woken, sizeof(woken));
  if (count > 0) move_on();
  moved_.notify_all();
}

void Link::wait(const RequestPtr& request) {
  const auto end = after(options_.timeout), spin_end = Clock::now() + kSpin;
  std::unique_lock lock(mutex_);
  while (!request->finished) {
    // While there is no connection, the reconnecting thread decides when to give up.
    const auto deadline = channel_ ? std::max(end, connected_again_at_ + duration_of(options_.timeout))
                                   : give_up_at_ + duration_of(kAttempt + options_.timeout);
    if (Clock::now() < spin_end && !polling_) {
      move_on();
      if (request->finished) break;
      lock.unlock();
      ::sched_yield();
      lock.lock();
      continue;
    }
    if (Clock::now() >= deadline) {
      for (const auto& [id, other] : in_flight_) {
        if (other->message.header.in_memory()) keep_for_good(other);
      }
      fail_all(std::make_exception_ptr(
          Error("no answer to " + request->what + " within " + format_text("%g", options_.timeout.count()) + " s")));
      request->error = std::make_exception_ptr(CommError(
          CommError::Kind::kTimeout, request->what + ": parameter server " + address_ + " did not answer within " +
                                         format_text("%g", options_.timeout.count()) + " s"));
      break;
    }
    if (options_.replicated()) {
      look_whether_it_lives();
      poll_once(lock, std::min(deadline, after(options_.failover / 4)));
    } else {
      poll_once(lock, deadline);
    }
  }
  if (const auto error = std::exchange(request->error, nullptr)) std::rethrow_exception(error);
}

// Runs in the client's own thread and moves data through the connection while no other thread waits.
void Link::run() {
  std::unique_lock lock(mutex_);
  try {
    while (!stopping_) {
      if (!channel_ && !broken_) {
        reconnect(lock);
      } else if (in_flight_.empty()) {
        moved_.wait(lock, [this] { return stopping_ || !in_flight_.empty() || (!channel_ && !broken_); });
      } else {
        poll_once(lock, after(Seconds(1)));
      }
    }
  } catch (const std::exception&) {
    if (!lock.owns_lock()) lock.lock();
    fail_all(std::current_exception());  // waiting threads throw it
  }
}

}  // namespace phalanx::ps
