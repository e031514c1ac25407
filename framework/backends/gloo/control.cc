// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/control.h"

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
const HandshakeProtocol kControlProtocol{.client_opening = "phalanx gloo members 2?",
                                         .server_opening = "phalanx gloo members 2!",
                                         .identity = "phalanx gloo members 2",
                                         .claim_bytes = 2 * kIdDigits};

constexpr std::size_t kMaxText = membership::kMaxMessageBytes + 64;
constexpr milliseconds kDialing{3000};  // for one attempt; the system tries twice in this time
constexpr milliseconds kShortNap{2}, kLongNap{2000};

// Precedes each text.
struct Head {
  std::uint64_t number = 0;
  std::uint64_t length = 0;
};

std::string claim_between(std::int64_t from, std::int64_t to) {
  return format_text("%0*d%0*d", kIdDigits, static_cast<int>(from), kIdDigits, static_cast<int>(to));
}

std::string where(const Control& control, std::int64_t peer) {
  return "shrink of " + control.group + ", rank " + std::to_string(control.own) + ": rank " + std::to_string(peer);
}

Descriptor copy_of(const Descriptor& descriptor) {
  if (!descriptor.valid()) return Descriptor();
  Descriptor copy = descriptor.duplicate();
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
  struct Text {
    std::uint64_t number = 0;
    std::string bytes{};  // with its head
  };

  std::int64_t peer = 0;
  Descriptor socket{};  // invalid while there is none
  Clock::time_point dialed{};
  std::optional<ClientHandshake> handshake{};  // from the time on at which the socket is connected
  std::string received{};                      // of the next message of the handshake, then of the next acknowledgement
  std::string greeting{};                      // not sent yet
  std::deque<Text> texts{};                    // not acknowledged
  std::size_t next = 0;                        // the first of them that is not written to this connection
  std::size_t sent = 0;                        // bytes of that one which are written
  std::uint64_t acknowledged = 0;              // number of the last text that the peer has received
  milliseconds nap = kShortNap;
  Clock::time_point next_dial{};
  std::string problem{};

  bool is_open() const { return handshake && handshake->result(); }

  // Leaves out the texts that the peer has received, but never the rest of one that is partly written.
  void forget_acknowledged() {
    while (!texts.empty() && texts.front().number <= acknowledged && (next > 0 || sent == 0)) {
      texts.pop_front();
      next -= next > 0 ? 1 : 0;
    }
  }
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

std::uint64_t ControlLinks::send(std::int64_t to, std::string_view text) {
  const auto out = outs_.find(to);
  if (out == outs_.end() || control_.gone.contains(to)) return 0;
  const Head head{.number = ++control_.numbered, .length = text.size()};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof(head));
  out->second.texts.push_back({.number = head.number, .bytes = bytes.append(text)});
  return head.number;
}

bool ControlLinks::has_received(std::int64_t member, std::uint64_t text) const {
  const auto out = outs_.find(member);
  return out == outs_.end() || out->second.acknowledged >= text;
}

std::string ControlLinks::problem(std::int64_t member) const {
  const auto out = outs_.find(member);
  return out == outs_.end() ? "" : out->second.problem;
}

void ControlLinks::pump(const Receive& receive) {
  bool moved = false;
  for (auto& [peer, out] : outs_) {
    if (!control_.gone.contains(peer)) moved |= move(out);
  }
  for (auto in = ins_.begin(); in != ins_.end();) {
    bool arrived = false, complete = false;
    bool lives = read_into(in->received, in->socket.get(), arrived);
    moved |= arrived;
    while (take(*in, receive)) complete = true;
    if (complete && !acknowledge(*in)) lives = false;
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

// Passes the next text on, if it has arrived completely and for the first time.
bool ControlLinks::take(In& in, const Receive& receive) {
  Head head;
  if (in.received.size() < sizeof(head)) return false;
  std::memcpy(&head, in.received.data(), sizeof(head));
  if (head.length > kMaxText) {
    throw CommError(CommError::Kind::kSystem, where(control_, in.peer) + " has sent a message of " +
                                                  std::to_string(head.length) +
                                                  " bytes; run the same program on all ranks");
  }
  if (in.received.size() < sizeof(head) + head.length) return false;
  const std::string text = in.received.substr(sizeof(head), head.length);
  in.received.erase(0, sizeof(head) + head.length);
  auto& last = control_.received[in.peer];
  if (head.number <= last) return true;
  last = head.number;
  receive(in.peer, text);
  return true;
}

// Returns false if it fails. Then the connection must end, so that the peer dials again.
bool ControlLinks::acknowledge(const In& in) const {
  const std::uint64_t last = control_.received.at(in.peer);
  return ::send(in.socket.get(), &last, sizeof(last), MSG_NOSIGNAL) == sizeof(last);
}

// Goes on connecting to a member. Returns true if it is connected or gone.
bool ControlLinks::dial(Out& out) {
  const auto& address = control_.addresses[out.peer];
  const auto now = Clock::now();
  try {
    if (!out.socket.valid()) {
      if (now < out.next_dial) return false;
      out.socket = begin_to_connect(address);
      out.dialed = now;
    }
    if (!has_connected(out.socket.get(), address)) {
      if (now >= out.dialed + kDialing) drop(out, "its host does not answer");
      return false;
    }
  } catch (const ConnectionRefused&) {
    control_.gone.insert(out.peer);
    out.socket.close();
    return true;
  } catch (const Error& error) {  // this includes an address that cannot be resolved
    drop(out, error.what());
    return false;
  }
  out.handshake.emplace(kControlProtocol, control_.secret, claim_between(control_.own, out.peer));
  out.greeting = out.handshake->hello();
  return true;
}

// The next connection is tried after a pause, and begins with the first text that is not acknowledged.
void ControlLinks::drop(Out& out, const std::string& why) {
  out.socket.close();
  out.handshake.reset();
  out.received.clear();
  out.greeting.clear();
  out.next = out.sent = 0;
  out.next_dial = Clock::now() + out.nap;
  out.nap = std::min(out.nap * 2, kLongNap);
  out.problem = why;
}

// Returns true if something has happened.
bool ControlLinks::move(Out& out) {
  if (!out.handshake) return dial(out);
  bool moved = false;
  if (!read_into(out.received, out.socket.get(), moved)) {
    drop(out, "the connection has ended");
    return true;
  }
  if (!greet(out)) return true;
  if (!out.is_open()) return moved;
  std::uint64_t number = 0;
  std::size_t read = 0;
  for (; out.received.size() - read >= sizeof(number); read += sizeof(number)) {
    std::memcpy(&number, out.received.data() + read, sizeof(number));
    out.acknowledged = std::max(out.acknowledged, number);
  }
  out.received.erase(0, read);
  out.forget_acknowledged();
  return write(out) || moved;
}

// Goes on with the handshake. Returns false if it has failed.
bool ControlLinks::greet(Out& out) {
  while (!out.is_open() && out.received.size() >= out.handshake->next_bytes()) {
    const std::size_t bytes = out.handshake->next_bytes();
    try {
      out.greeting += out.handshake->answer(out.received.substr(0, bytes));
    } catch (const CommError& error) {  // another program listens there, which does not say that the member has ended
      drop(out, error.what());
      return false;
    }
    out.received.erase(0, bytes);
    if (!out.is_open()) continue;
    // A member has the secret, so this is a program of another job, at a port that the member has left.
    if (*out.handshake->result() != HandshakeResult::kAdmitted) {
      drop(out, "a program with another secret listens at " + control_.addresses[out.peer]);
      return false;
    }
    out.nap = kShortNap;
    out.problem.clear();
  }
  if (out.greeting.empty()) return true;
  // It fits into the buffer of a new connection.
  const ssize_t count = ::send(out.socket.get(), out.greeting.data(), out.greeting.size(), MSG_NOSIGNAL);
  if (count != static_cast<ssize_t>(out.greeting.size())) {
    drop(out, "the connection has ended");
    return false;
  }
  out.greeting.clear();
  return true;
}

// Writes texts. Returns true if something has happened.
bool ControlLinks::write(Out& out) {
  bool moved = false;
  while (out.next < out.texts.size()) {
    const std::string& bytes = out.texts[out.next].bytes;
    const ssize_t count = ::send(out.socket.get(), bytes.data() + out.sent, bytes.size() - out.sent, MSG_NOSIGNAL);
    if (count < 0 && !not_ready()) {
      drop(out, "the connection has ended");
      return true;
    }
    if (count < 0) break;
    moved = true;
    out.sent += static_cast<std::size_t>(count);
    if (out.sent < bytes.size()) continue;
    ++out.next;
    out.sent = 0;
  }
  return moved;
}

}  // namespace phalanx::gloo
