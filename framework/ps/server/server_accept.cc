// SPDX-License-Identifier: Apache-2.0
// Accepts connections, and limits the number and the lifetime of those that have not identified themselves.
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <utility>

#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/ps/server/server_loop.h"

namespace phalanx::ps {
namespace {

constexpr Seconds kPause(1);        // after a failure to accept a connection
constexpr Seconds kTimeToGreet(1);  // after this time, a new connection may replace an unidentified one

}  // namespace

void Server::Loop::accept_all(int listener) {
  while (make_room_for_handshake()) {
    Descriptor socket = accept_from(listener);
    if (!socket.valid() && errno == ECONNABORTED) continue;
    if (!socket.valid()) {
      if (!not_ready()) listeners_.pause(after(kPause), std::strerror(errno));
      return;
    }
    try {
      add_session(std::move(socket));
    } catch (const std::exception& error) {
      return listeners_.pause(after(kPause), error.what());
    }
  }
}

void Server::Loop::add_session(Descriptor socket) {
  const int file = socket.get();
  auto session = std::make_shared<Session>(std::move(socket));
  session->allocate_payload = [this, session = session.get()](const Message& begun) {
    return allocate_payload(*session, begun);
  };
  poll_.add(file, EPOLLIN);
  handshakes_.add(session);
  sessions_.emplace(file, std::move(session));
}

// Returns false, and pauses accepting, if there is no room.
bool Server::Loop::make_room_for_handshake() {
  const auto& limits = options_.admission;
  if (sessions_.size() >= limits.connections) {
    listeners_.pause(after(kPause), "all " + std::to_string(limits.connections) + " connections are in use");
    return false;
  }
  if (handshakes_.size() < limits.pending_handshakes) return true;
  const auto dispensable = handshakes_.oldest().since + duration_of(kTimeToGreet);
  if (Clock::now() >= dispensable) {
    end(handshakes_.take_oldest(), "it did not identify itself, and others are waiting");
    return true;
  }
  listeners_.pause(dispensable,
                   std::to_string(limits.pending_handshakes) + " connections have not identified themselves yet");
  return false;
}

void Server::Loop::expire_handshakes() {
  const auto now = Clock::now();
  while (handshakes_.due() <= now) end(handshakes_.take_oldest(), "it did not identify itself in time");
  listeners_.resume_if_due();
}

void Server::Loop::finish_handshake(const SessionPtr& session) {
  handshakes_.remove(session);
  listeners_.resume_soon();
}

}  // namespace phalanx::ps
