// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/store_server.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "framework/base/blocked_signals.h"
#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/log_rate_limiter.h"
#include "framework/base/sockets.h"
#include "framework/comm/store/store_session.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;
using Session = std::shared_ptr<StoreSession>;

constexpr std::chrono::seconds kPause(1);  // after a failure to accept a connection
constexpr std::chrono::seconds kTimeToGreet(
    1);  // an unauthenticated connection that is older may be replaced by a new one

// Returns the time until `due` for epoll_wait(). Rounds up, so that it really is due after the wait. Returns -1, which
// means forever, for max().
int milliseconds_to(Clock::time_point due) {
  if (due == Clock::time_point::max()) return -1;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(due - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, 60'000));
}

}  // namespace

class StoreServer::Loop {
 public:
  Loop(std::string name, Descriptor listener, std::string secret, const StoreLimits& limits);

  void run();
  void stop() {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof(one));  // a counter of 0 has room for one more
  }
  void close();
  const std::string& name() const { return name_; }

 private:
  void watch(int socket, std::uint32_t events, int how);
  void accept_all();
  bool make_room_for_handshake();
  void pause_accepting(Clock::time_point until, const std::string& why);
  void expire_handshakes();
  void serve(const Session& session, std::uint32_t events);
  void end(const Session& session, const std::string& why);
  void answer(StoreSession& session, StoreRequest request);
  void add(StoreSession& session, const StoreRequest& request);
  Clock::time_point greeting_deadline(const Session& session) const {
    return session->since() + std::chrono::duration_cast<Clock::duration>(limits_.greeting);
  }

  const std::string name_, secret_;
  const StoreLimits limits_;
  Descriptor listener_, wake_, epoll_;
  std::unordered_map<std::string, std::string> values_;
  std::map<int, Session> sessions_;                             // by socket
  std::deque<Session> handshakes_;                              // sessions that are not admitted yet, oldest first
  Clock::time_point accepts_again_ = Clock::time_point::max();  // no connection is accepted until then; max: accepting
  LogRateLimiter log_pauses_{std::chrono::minutes(1)};
  LogRateLimiters log_strangers_{std::chrono::minutes(1)};  // by reason
};

StoreServer::Loop::Loop(std::string name, Descriptor listener, std::string secret, const StoreLimits& limits)
    : name_(std::move(name)),
      secret_(std::move(secret)),
      limits_(limits),
      listener_(std::move(listener)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  // A connection may be gone by the time it is accepted, and a blocking accept would then hold up all others.
  if (!wake_.valid() || !epoll_.valid() || ::fcntl(listener_.get(), F_SETFL, O_NONBLOCK) != 0) {
    throw CommError(CommError::Kind::kSystem, name_ + ": cannot serve: " + std::strerror(errno));
  }
  watch(wake_.get(), EPOLLIN, EPOLL_CTL_ADD);
  watch(listener_.get(), EPOLLIN, EPOLL_CTL_ADD);
}

void StoreServer::Loop::watch(int socket, std::uint32_t events, int how) {
  epoll_event event{.events = events, .data = {.fd = socket}};
  if (::epoll_ctl(epoll_.get(), how, socket, &event) != 0) {
    throw CommError(CommError::Kind::kSystem, name_ + ": cannot watch a connection: " + std::strerror(errno));
  }
}

void StoreServer::Loop::run() {
  std::array<epoll_event, 64> events{};
  while (true) {
    auto due = accepts_again_;
    if (!handshakes_.empty()) due = std::min(due, greeting_deadline(handshakes_.front()));
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds_to(due));
    if (count < 0 && errno != EINTR) throw Error(std::string("epoll_wait: ") + std::strerror(errno));
    for (int i = 0; i < count; ++i) {
      const int socket = events[i].data.fd;
      if (socket == wake_.get()) return;
      if (socket == listener_.get()) {
        accept_all();
      } else if (const auto found = sessions_.find(socket); found != sessions_.end()) {
        serve(Session(found->second), events[i].events);  // a copy, since the connection may end during the call
      }
    }
    expire_handshakes();
  }
}

void StoreServer::Loop::close() {
  listener_.close();
  handshakes_.clear();
  sessions_.clear();
}

void StoreServer::Loop::accept_all() {
  while (make_room_for_handshake()) {
    Descriptor socket = accept_from(listener_.get());
    if (!socket.valid() && errno == ECONNABORTED) continue;
    if (!socket.valid()) {
      if (!not_ready()) pause_accepting(Clock::now() + kPause, std::strerror(errno));
      return;
    }
    try {
      const int file = socket.get();
      auto session = std::make_shared<StoreSession>(std::move(socket), secret_);
      watch(file, EPOLLIN, EPOLL_CTL_ADD);
      handshakes_.push_back(session);
      sessions_.emplace(file, std::move(session));
    } catch (const std::exception& error) {
      return pause_accepting(Clock::now() + kPause, error.what());
    }
  }
}

// Returns false, and pauses accepting, if there is no room.
bool StoreServer::Loop::make_room_for_handshake() {
  if (sessions_.size() >= limits_.connections) {
    pause_accepting(Clock::now() + kPause, "all " + std::to_string(limits_.connections) + " connections are in use");
    return false;
  }
  if (handshakes_.size() < limits_.pending_handshakes) return true;
  const Session oldest = handshakes_.front();
  const auto dispensable = oldest->since() + kTimeToGreet;
  if (Clock::now() >= dispensable) {
    end(oldest, "it did not prove that it knows the secret, and others are waiting");
    return true;
  }
  pause_accepting(dispensable,
                  std::to_string(limits_.pending_handshakes) + " connections have not proved yet who they are");
  return false;
}

// Connections that arrive during the pause stay in the queue of the listening socket.
void StoreServer::Loop::pause_accepting(Clock::time_point until, const std::string& why) {
  accepts_again_ = until;
  watch(listener_.get(), 0, EPOLL_CTL_MOD);
  if (const auto more = log_pauses_.pass()) {
    log_warning() << name_ << ": connections have to wait: " << why << *more;
  }
}

void StoreServer::Loop::expire_handshakes() {
  const auto now = Clock::now();
  while (!handshakes_.empty() && greeting_deadline(handshakes_.front()) <= now) {
    end(Session(handshakes_.front()), "it did not prove in time that it knows the secret");
  }
  if (accepts_again_ > now) return;
  accepts_again_ = Clock::time_point::max();
  watch(listener_.get(), EPOLLIN, EPOLL_CTL_MOD);
}

void StoreServer::Loop::serve(const Session& session, std::uint32_t events) {
  try {
    const bool was_admitted = session->admitted();
    if ((events & EPOLLOUT) != 0) session->flush();
    while (!session->has_output()) {
      auto request = session->receive();
      if (!request) break;
      answer(*session, *std::move(request));
    }
    if (!was_admitted && session->admitted()) {
      std::erase(handshakes_, session);
      if (accepts_again_ != Clock::time_point::max()) accepts_again_ = Clock::now();
    }
    watch(session->socket(), session->has_output() ? EPOLLOUT : EPOLLIN, EPOLL_CTL_MOD);
  } catch (const std::exception& error) {
    end(session, error.what());
  }
}

// Lines about unauthenticated peers are limited, because anyone could fill the log with them.
void StoreServer::Loop::end(const Session& session, const std::string& why) {
  const std::string peer = peer_of(session->socket());
  const std::string line = name_ + ": the connection of " + (peer.empty() ? "a peer" : peer) + " ended: " + why;
  if (session->admitted()) {
    log_info() << line;
  } else if (const auto more = log_strangers_.pass(why)) {
    session->refused() ? log_warning() << line << *more : log_info() << line << *more;
  }
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, session->socket(), nullptr);
  std::erase(handshakes_, session);
  if (accepts_again_ != Clock::time_point::max()) accepts_again_ = Clock::now();
  sessions_.erase(session->socket());
}

void StoreServer::Loop::answer(StoreSession& session, StoreRequest request) {
  if (request.header.verb == StoreVerb::kSet) {
    values_.insert_or_assign(std::move(request.key), std::move(request.value));
    session.reply({.status = StoreStatus::kDone});
  } else if (request.header.verb == StoreVerb::kAdd) {
    add(session, request);
  } else if (const auto found = values_.find(request.key); found != values_.end()) {
    const auto bytes = static_cast<std::int64_t>(found->second.size());
    session.reply({.status = StoreStatus::kDone, .result = bytes}, found->second);
  } else {
    session.reply({.status = StoreStatus::kAbsent});
  }
}

void StoreServer::Loop::add(StoreSession& session, const StoreRequest& request) {
  std::int64_t sum = 0;
  if (const auto found = values_.find(request.key); found != values_.end()) {
    const char* end = found->second.data() + found->second.size();
    const auto [rest, error] = std::from_chars(found->second.data(), end, sum);
    if (error != std::errc{} || rest != end) return session.reply({.status = StoreStatus::kNotANumber});
  }
  sum =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(request.header.argument));
  values_.insert_or_assign(request.key, std::to_string(sum));
  session.reply({.status = StoreStatus::kDone, .result = sum});
}

StoreServer::StoreServer(std::string name, Descriptor listener, std::string secret, const StoreLimits& limits)
    : loop_(std::make_unique<Loop>(std::move(name), std::move(listener), std::move(secret), limits)) {
  const BlockedSignals blocked;  // signals must reach the threads that expect them
  thread_ = std::thread([this] {
    try {
      loop_->run();
    } catch (const std::exception& error) {
      log_error() << loop_->name() << ": the server ends because of an error: " << error.what();
    }
    loop_->close();
  });
}

StoreServer::~StoreServer() {
  loop_->stop();
  thread_.join();
}

}  // namespace phalanx
