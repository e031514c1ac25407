// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/control.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"

namespace phalanx::gloo {
namespace {

using std::chrono::milliseconds;

// A client claims to be one member that wants to speak with another.
constexpr int kIdDigits = 10;
const HandshakeProtocol kControlProtocol{.client_opening = "phalanx gloo members 1?",
                                         .server_opening = "phalanx gloo members 1!",
                                         .identity = "phalanx gloo members 1",
                                         .claim_bytes = 2 * kIdDigits};

constexpr std::size_t kMaxText = membership::kMaxMessageBytes + 64;
constexpr double kDialing = 0.1;  // seconds; connecting to a host that answers takes no longer
constexpr milliseconds kShortNap{2}, kLongNap{2000};

std::string claim_between(std::int64_t from, std::int64_t to) {
  return format_text("%0*d%0*d", kIdDigits, static_cast<int>(from), kIdDigits, static_cast<int>(to));
}

std::string where(const Control& control, std::int64_t peer) {
  return "shrink of " + control.group + ", rank " + std::to_string(control.own) + ": rank " + std::to_string(peer);
}

Descriptor copy_of(const Descriptor& descriptor) {
  if (!descriptor.valid()) return Descriptor();
  Descriptor copy(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
  if (copy.valid()) return copy;
  throw CommError(CommError::Kind::kSystem,
                  "cannot copy the descriptor of a socket: " + std::generic_category().message(errno));
}

// Reads what has arrived. Returns false if the connection has ended.
bool read_into(std::string& text, int socket, bool& moved) {
  char part[16 << 10];
  while (true) {
    const ssize_t count = ::recv(socket, part, sizeof(part), 0);
    if (count < 0) return not_ready();
    if (count == 0) return false;
    moved = true;
    text.append(part, static_cast<std::size_t>(count));
    if (text.size() > kMaxText) return true;  // the rest is read later
  }
}

}  // namespace

// A connection that this member dials.
struct ControlLinks::Out {
  std::int64_t peer = 0;
  Descriptor socket{};  // invalid while there is none
  std::optional<ClientHandshake> handshake{};
  std::string received{};  // of the next message of the handshake
  std::string greeting{};  // not sent yet
  std::deque<std::string> texts{};
  std::size_t sent = 0;  // bytes of the first text
  milliseconds nap = kShortNap;
  Clock::time_point next_dial{};

  bool is_open() const { return handshake && handshake->result(); }
};

// A connection that this member has accepted.
struct ControlLinks::In {
  std::int64_t peer = 0;
  Descriptor socket{};
  std::string received{};
};

ControlLinks::ControlLinks(Control& control)
    : control_(control),
      door_("gloo, " + control.group + ", rank " + std::to_string(control.own) + ", members", copy_of(control.listener),
            kControlProtocol, control.secret) {
  for (std::int64_t peer = 0; peer < static_cast<std::int64_t>(control.addresses.size()); ++peer) {
    if (peer != control.own && !control.gone.contains(peer)) outs_[peer].peer = peer;
  }
}

ControlLinks::~ControlLinks() {
  for (auto& [peer, out] : outs_) {
    if (out.is_open()) move(out);
  }
}

void ControlLinks::send(std::int64_t to, std::string_view text) {
  const auto out = outs_.find(to);
  if (out == outs_.end() || control_.gone.contains(to)) return;
  const auto length = static_cast<std::uint32_t>(text.size());
  std::string framed(reinterpret_cast<const char*>(&length), sizeof(length));
  out->second.texts.push_back(framed.append(text));
}

bool ControlLinks::has_sent(std::int64_t to) const {
  const auto out = outs_.find(to);
  return out == outs_.end() || out->second.texts.empty();
}

void ControlLinks::pump(const Receive& receive) {
  bool moved = false;
  for (auto& [peer, out] : outs_) {
    if (!control_.gone.contains(peer)) moved |= move(out);
  }
  for (auto in = ins_.begin(); in != ins_.end();) {
    bool arrived = false;
    const bool lives = read_into(in->received, in->socket.get(), arrived);
    moved |= arrived;
    while (take(*in, receive)) continue;
    in = lives ? std::next(in) : ins_.erase(in);
  }
  const auto now = Clock::now();
  if (moved) moved_ = now;
  const auto pause = now - moved_ < milliseconds(500) ? milliseconds(1) : milliseconds(20);
  if (!control_.listener.valid()) return;
  auto admitted = door_.next(moved ? now : now + pause);
  if (!admitted) return;
  moved_ = Clock::now();
  for (const auto& [peer, out] : outs_) {
    if (admitted->claim == claim_between(peer, control_.own)) {
      ins_.push_back({.peer = peer, .socket = std::move(admitted->socket)});
      return;
    }
  }
}

// Passes the next text on, if it has arrived completely.
bool ControlLinks::take(In& in, const Receive& receive) {
  std::uint32_t length = 0;
  if (in.received.size() < sizeof(length)) return false;
  std::memcpy(&length, in.received.data(), sizeof(length));
  if (length > kMaxText) {
    throw CommError(CommError::Kind::kSystem, where(control_, in.peer) + " has sent a message of " +
                                                  std::to_string(length) + " bytes; run the same program on all ranks");
  }
  if (in.received.size() < sizeof(length) + length) return false;
  const std::string text = in.received.substr(sizeof(length), length);
  in.received.erase(0, sizeof(length) + length);
  receive(in.peer, text);
  return true;
}

void ControlLinks::dial(Out& out) {
  try {
    out.socket = connect_to(control_.addresses[out.peer], kDialing);
    out.handshake.emplace(kControlProtocol, control_.secret, claim_between(control_.own, out.peer));
    out.greeting = out.handshake->hello();
  } catch (const ConnectionRefused&) {
    control_.gone.insert(out.peer);
  } catch (const CannotConnect&) {
    drop(out);
  }
}

// The next connection is tried after a pause. What was sent over this one may be lost.
void ControlLinks::drop(Out& out) {
  out.socket.close();
  out.handshake.reset();
  out.received.clear();
  out.greeting.clear();
  out.sent = 0;
  out.next_dial = Clock::now() + out.nap;
  out.nap = std::min(out.nap * 2, kLongNap);
}

// Returns true if something has happened.
bool ControlLinks::move(Out& out) {
  if (!out.socket.valid()) {
    if (Clock::now() < out.next_dial) return false;
    dial(out);
    return true;
  }
  bool moved = false;
  if (!read_into(out.received, out.socket.get(), moved)) {
    drop(out);
    return true;
  }
  while (!out.is_open() && out.received.size() >= out.handshake->next_bytes()) {
    const std::size_t bytes = out.handshake->next_bytes();
    try {
      out.greeting += out.handshake->answer(out.received.substr(0, bytes));
    } catch (const CommError&) {  // another program listens there, which does not say that the member has ended
      drop(out);
      return true;
    }
    out.received.erase(0, bytes);
    if (!out.is_open()) continue;
    // A member has the secret, so this is a program of another job, at a port that the member has left.
    if (*out.handshake->result() != HandshakeResult::kAdmitted) {
      drop(out);
      return true;
    }
    out.nap = kShortNap;
  }
  if (!out.greeting.empty()) {  // it fits into the buffer of a new connection
    const ssize_t count = ::send(out.socket.get(), out.greeting.data(), out.greeting.size(), MSG_NOSIGNAL);
    if (count != static_cast<ssize_t>(out.greeting.size())) {
      drop(out);
      return true;
    }
    out.greeting.clear();
    moved = true;
  }
  while (out.is_open() && !out.texts.empty()) {
    const std::string_view rest = std::string_view(out.texts.front()).substr(out.sent);
    const ssize_t count = ::send(out.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && !not_ready()) {
      drop(out);
      return true;
    }
    if (count < 0) break;
    moved = true;
    out.sent += static_cast<std::size_t>(count);
    if (out.sent < out.texts.front().size()) continue;
    out.texts.pop_front();
    out.sent = 0;
  }
  return moved;
}

}  // namespace phalanx::gloo
