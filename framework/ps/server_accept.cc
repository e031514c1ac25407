// SPDX-License-Identifier: Apache-2.0
// Accepts connections, and limits the number and the lifetime of those that have not identified themselves.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/ps/server_loop.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kPause(1);        // after a failure to accept a connection
constexpr Seconds kTimeToGreet(1);  // after this time, a newcomer may replace a stranger

}  // namespace

void Server::Loop::accept_all(int listener) {
  while (make_room_for_stranger()) {
    Descriptor socket = accept_from(listener);
    if (!socket.valid() && errno == ECONNABORTED) continue;
    if (!socket.valid()) {
      if (!not_ready()) pause_accepting(after(kPause), std::strerror(errno));
      return;
    }
    try {
      add_session(std::move(socket));
    } catch (const std::exception& error) {
      return pause_accepting(after(kPause), error.what());
    }
  }
}

void Server::Loop::add_session(Descriptor socket) {
  const int file = socket.get();
  auto session = std::make_shared<Session>(std::move(socket));
  session->make_room = [this, session = session.get()](const Message& begun) { return make_room(*session, begun); };
  watch(file, EPOLLIN, EPOLL_CTL_ADD);
  strangers_.push_back(session);
  sessions_.emplace(file, std::move(session));
}

// Returns false, and pauses accepting, if there is no room.
bool Server::Loop::make_room_for_stranger() {
  const auto& limits = options_.admission;
  if (sessions_.size() >= limits.connections) {
    pause_accepting(after(kPause), "all " + std::to_string(limits.connections) + " connections are in use");
    return false;
  }
  if (strangers_.size() < limits.strangers) return true;
  const SessionPtr oldest = strangers_.front();
  const auto dispensable = oldest->since + duration_of(kTimeToGreet);
  if (Clock::now() >= dispensable) {
    strangers_.pop_front();
    end(oldest, "it did not identify itself, and others are waiting");
    return true;
  }
  pause_accepting(dispensable, std::to_string(limits.strangers) + " connections have not identified themselves yet");
  return false;
}

// Connections that arrive during the pause stay in the queue of the listening socket.
void Server::Loop::pause_accepting(Clock::time_point until, const std::string& why) {
  accepts_again_ = until;
  for (const auto& listener : listeners_) watch(listener.get(), 0, EPOLL_CTL_MOD);
  if (const auto more = log_pauses_.pass()) {
    log_warning() << "parameter server: connections have to wait: " << why << *more;
  }
}

void Server::Loop::tend_strangers() {
  const auto now = Clock::now();
  while (!strangers_.empty() && greeting_due(*strangers_.front()) <= now) {
    const SessionPtr late = strangers_.front();
    strangers_.pop_front();
    end(late, "it did not identify itself in time");
  }
  if (accepts_again_ > now) return;
  accepts_again_ = Clock::time_point::max();
  for (const auto& listener : listeners_) watch(listener.get(), EPOLLIN, EPOLL_CTL_MOD);
}

void Server::Loop::no_longer_stranger(const SessionPtr& session) {
  std::erase(strangers_, session);
  if (accepts_again_ != Clock::time_point::max()) accepts_again_ = Clock::now();
}

Clock::time_point Server::Loop::greeting_due(const Session& stranger) const {
  return stranger.since + duration_of(options_.admission.greeting);
}

}  // namespace phalanx::ps
