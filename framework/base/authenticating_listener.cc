// SPDX-License-Identifier: Apache-2.0
#include "framework/base/authenticating_listener.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <exception>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPause(1);               // after a failure to accept a connection
constexpr std::chrono::milliseconds kTimeToGreet(250);  // a peer that has waited longer may be replaced by a newcomer
constexpr std::chrono::minutes kLogInterval(1);

Clock::duration duration_of(std::chrono::duration<double> time) {
  return std::chrono::duration_cast<Clock::duration>(time);
}

int milliseconds_until(Clock::time_point due) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

// The answers of a handshake fit into the buffer of a new connection.
void send_at_once(int socket, const std::string& answer) {
  const ssize_t count = ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
  if (count != static_cast<ssize_t>(answer.size())) throw Error(count < 0 ? std::strerror(errno) : "it does not read");
}

// Reads what has arrived of the next message of a handshake. Returns true once it is complete.
bool read_message(int socket, std::string& message, std::size_t& received, std::size_t bytes) {
  message.resize(bytes);
  while (received < bytes) {
    const ssize_t count = ::recv(socket, message.data() + received, bytes - received, 0);
    if (count == 0) throw Error("it has closed the connection");
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && not_ready()) return false;
    if (count < 0) throw Error(std::strerror(errno));
    received += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

AuthenticatingListener::AuthenticatingListener(std::string name, Descriptor listener, HandshakeProtocol protocol,
                                               std::string secret, const StrangerLimits& limits)
    : name_(std::move(name)),
      listener_(std::move(listener)),
      protocol_(std::move(protocol)),
      secret_(std::move(secret)),
      limits_(limits),
      log_strangers_(kLogInterval) {}

std::optional<AuthenticatingListener::Peer> AuthenticatingListener::next(TimedStream::Deadline deadline) {
  while (true) {
    drop_late();
    const bool accepting = accepts();
    std::vector<pollfd> files{{.fd = accepting ? listener_.get() : -1, .events = POLLIN, .revents = 0}};
    std::vector<Strangers::iterator> strangers;
    for (auto stranger = strangers_.begin(); stranger != strangers_.end(); ++stranger) {
      files.push_back({.fd = stranger->socket.get(), .events = POLLIN, .revents = 0});
      strangers.push_back(stranger);
    }
    if (::poll(files.data(), files.size(), milliseconds_until(due(deadline, accepting))) < 0 && errno != EINTR) {
      throw CommError(CommError::Kind::kSystem, name_ + ": cannot wait for peers: " + std::strerror(errno));
    }
    for (std::size_t i = 0; i < strangers.size(); ++i) {
      if (files[i + 1].revents == 0) continue;
      if (auto peer = serve(strangers[i])) return peer;
    }
    if (files.front().revents != 0) accept_all();
    if (Clock::now() >= deadline) return std::nullopt;
  }
}

// Returns true if a connection may be accepted now. Otherwise it stays in the queue of the listening socket.
bool AuthenticatingListener::accepts() {
  if (Clock::now() < paused_until_) return false;
  if (strangers_.size() < limits_.pending) return true;
  if (Clock::now() >= strangers_.front().since + kTimeToGreet) {
    drop(strangers_.begin(), "it did not prove that it knows the secret, and others are waiting");
    return true;
  }
  if (const auto more = log_strangers_.pass("pause")) {
    log_warning() << name_ << ": connections have to wait: " << limits_.pending
                  << " others have not proved yet who they are" << *more;
  }
  return false;
}

// Returns the time at which something happens even if no peer sends anything.
AuthenticatingListener::Clock::time_point AuthenticatingListener::due(TimedStream::Deadline deadline,
                                                                      bool accepting) const {
  auto due = deadline;
  if (!strangers_.empty()) due = std::min(due, strangers_.front().since + duration_of(limits_.greeting));
  if (accepting) return due;
  const bool full = strangers_.size() >= limits_.pending;
  return std::min(due, full ? strangers_.front().since + kTimeToGreet : paused_until_);
}

void AuthenticatingListener::accept_all() {
  while (strangers_.size() < limits_.pending) {
    Descriptor socket = accept_from(listener_.get());
    if (!socket.valid() && errno == ECONNABORTED) continue;
    if (!socket.valid() && not_ready()) return;
    if (!socket.valid()) {
      paused_until_ = Clock::now() + kPause;
      if (const auto more = log_strangers_.pass("pause")) {
        log_warning() << name_ << ": connections have to wait: " << std::strerror(errno) << *more;
      }
      return;
    }
    strangers_.push_back({.socket = std::move(socket), .handshake = ServerHandshake(protocol_, secret_)});
  }
}

void AuthenticatingListener::drop_late() {
  while (!strangers_.empty() && strangers_.front().since + duration_of(limits_.greeting) <= Clock::now()) {
    drop(strangers_.begin(), "it did not prove in time that it knows the secret");
  }
}

// Goes on with a handshake. Returns the peer if it is complete.
std::optional<AuthenticatingListener::Peer> AuthenticatingListener::serve(Strangers::iterator stranger) {
  auto& [socket, handshake, since, message, received] = *stranger;
  try {
    while (handshake.next_bytes() > 0) {
      const bool complete = read_message(socket.get(), message, received, handshake.next_bytes());
      if (!handshake.fits(std::string_view(message).substr(0, received))) {
        throw Error("its greeting is not that of a peer with the secret");
      }
      if (!complete) return std::nullopt;
      received = 0;
      send_at_once(socket.get(), handshake.answer(message));
    }
    if (handshake.refused()) throw Error("it does not know the secret");
    Peer peer{.socket = std::move(socket), .claim = handshake.claim()};
    strangers_.erase(stranger);
    return peer;
  } catch (const std::exception& error) {
    drop(stranger, error.what());
    return std::nullopt;
  }
}

// Lines are limited, because anyone could fill the log with them.
void AuthenticatingListener::drop(Strangers::iterator stranger, const std::string& why) {
  const std::string peer = peer_of(stranger->socket.get());
  if (const auto more = log_strangers_.pass(why)) {
    log_warning() << name_ << ": the connection of " << (peer.empty() ? "a stranger" : peer) << " ended: " << why
                  << *more;
  }
  strangers_.erase(stranger);
}

}  // namespace phalanx
