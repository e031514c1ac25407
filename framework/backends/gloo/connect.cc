// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/connect.h"

#include <gloo/barrier.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "framework/base/authenticating_listener.h"
#include "framework/base/error.h"
#include "framework/base/handshake.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/base/timed_stream.h"
#include "framework/comm/launch/host_network.h"

namespace phalanx::gloo {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// A client claims to be one rank that wants to speak with another.
constexpr int kDigits = 10;  // of a rank
constexpr milliseconds kCheck{5};
const HandshakeProtocol kProtocol{.client_opening = "phalanx gloo 1?",
                                  .server_opening = "phalanx gloo 1!",
                                  .identity = "phalanx gloo 1",
                                  .claim_bytes = 2 * kDigits};

std::string claim_of(int from, int to) { return format_text("%0*d%0*d", kDigits, from, kDigits, to); }

// Returns the rank that has connected to `own`, or -1 if the claim is of no other rank that does so.
int claimed_rank(const std::string& claim, const Member& member) {
  for (int from = member.rank + 1; from < member.size; ++from) {
    if (claim == claim_of(from, member.rank)) return from;
  }
  return -1;
}

milliseconds in_milliseconds(Seconds time) {
  return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(time));
}

std::string where(const Member& member) {
  return "connecting " + member.group + ", rank " + std::to_string(member.rank) + " of " + std::to_string(member.size);
}

// The greeting of one group is worthless in another. Survivors connect one view after the other, under the same name.
std::string secret_of(const Member& member) {
  if (!member.standing.control) return keyed_hash(member.endpoint.secret, {"gloo", member.group});
  const std::string view = std::to_string(member.standing.view.number);
  return keyed_hash(member.endpoint.secret, {"gloo", member.group, "view", view});
}

[[noreturn]] void explain(const Member& member, int peer, const std::string& address, CommError::Kind kind,
                          const std::string& why) {
  std::string text = where(member) + ": rank " + std::to_string(peer) + " cannot be reached";
  if (!address.empty()) text += " at " + address;
  text += " (" + why + ")";
  if (!member.address.empty()) text += "; this rank is at " + member.address;
  throw CommError(kind, text + "; " +
                            connection_advice("it",
                                              "the network interface (framework.interface, PHALANX_INTERFACE, "
                                              "GLOO_SOCKET_IFNAME)"));
}

// Survivors know that they have the same secret, so another one is that of another group, at a port that `peer` has
// left.
[[noreturn]] void refuse_secret(const Member& member, int peer, const std::string& address) {
  if (member.standing.control) {
    explain(member, peer, address, CommError::Kind::kPeerLost, "another group listens there by now");
  }
  throw CommError(CommError::Kind::kSystem,
                  where(member) + ": rank " + std::to_string(peer) + " at " + address +
                      " has another secret; give all ranks of the job the same (PHALANX_JOB_SECRET or " +
                      "PHALANX_JOB_SECRET_FILE)");
}

Descriptor listen(const Member& member) {
  try {
    return listen_at(with_port(member.endpoint.host, 0));
  } catch (const Error& error) {
    throw ConfigError("gloo: cannot use the address " + member.endpoint.host + " of this host: " + error.what());
  }
}

void check(const Member& member) {
  if (member.check) member.check();
  if (member.lasting_check) member.lasting_check();
}

// Returns a connection to the port of another rank.
Descriptor open_connection(const Member& member, const std::string& address, Clock::time_point deadline) {
  Descriptor socket = begin_to_connect(address);
  while (!has_connected(socket.get(), address)) {
    check(member);
    if (Clock::now() >= deadline) {
      throw CannotConnect("cannot connect to " + address + ": " + std::strerror(ETIMEDOUT));
    }
    pollfd connected{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    ::poll(&connected, 1, static_cast<int>(kCheck.count()));
  }
  return socket;
}

// Connects to a rank before this one. It is tried again if strangers have displaced the connection.
Descriptor dial(const Member& member, int peer, const std::string& address, Clock::time_point deadline) {
  for (milliseconds nap{1};; nap = std::min(nap * 2, milliseconds(250))) {
    bool refused = false;
    try {
      TimedStream stream(open_connection(member, address, deadline), [&] { check(member); });
      const auto result = greet(stream, kProtocol, secret_of(member), claim_of(member.rank, peer), deadline);
      if (result == HandshakeResult::kAdmitted) return stream.release();
      refused = true;
    } catch (const CommError& error) {
      check(member);
      if (Clock::now() + nap >= deadline) explain(member, peer, address, error.kind(), error.what());
    } catch (const Error& error) {
      std::string why = error.what();
      if (const std::string known = "cannot connect to " + address + ": "; why.starts_with(known))
        why.erase(0, known.size());
      explain(member, peer, address, Clock::now() >= deadline ? CommError::Kind::kTimeout : CommError::Kind::kPeerLost,
              why);
    }
    if (refused) refuse_secret(member, peer, address);
    std::this_thread::sleep_for(nap);
  }
}

// Waits for the ranks after this one.
void accept_peers(const Member& member, Descriptor listener, Transport& transport,
                  const std::vector<std::string>& addresses, Clock::time_point deadline) {
  AuthenticatingListener door("gloo, " + member.group + ", rank " + std::to_string(member.rank), std::move(listener),
                              kProtocol, secret_of(member));
  std::vector<bool> connected(member.size, false);
  const auto missing = [&] {
    return static_cast<int>(std::find(connected.begin() + member.rank + 1, connected.end(), false) - connected.begin());
  };
  while (missing() < member.size) {
    auto peer = door.next(std::min(deadline, Clock::now() + kCheck));
    check(member);
    if (!peer && Clock::now() < deadline) continue;
    if (!peer) {
      explain(member, missing(), addresses[missing()], CommError::Kind::kTimeout, "it did not connect in time");
    }
    const int rank = claimed_rank(peer->claim, member);
    if (rank < 0 || connected[rank]) {
      log_warning() << where(member) << ": dropped a connection of a peer that knows the secret, but is no rank that "
                    << "has still to connect to this one";
      continue;
    }
    transport.link(rank).adopt(std::move(peer->socket));
    connected[rank] = true;
  }
}

// The group goes on listening where its ranks have connected. The addresses tell it from others of the same name.
Standing new_standing(const Member& member, const std::vector<std::string>& addresses, const Descriptor& listener) {
  auto control = std::make_shared<Control>(
      Control{.group = member.group,
              .own = member.rank,
              .addresses = addresses,
              .secret = keyed_hash(member.endpoint.secret, {"gloo members", member.group, join(addresses, " ")}),
              .numbers = member.numbers});
  if (control->numbers.empty()) {
    for (int rank = 0; rank < member.size; ++rank) control->numbers.push_back(rank);
  }
  if (listener.valid()) control->listener = listener.duplicate();
  if (listener.valid() && !control->listener.valid()) {
    throw CommError(CommError::Kind::kSystem, where(member) + ": cannot keep a socket open: " + std::strerror(errno));
  }
  Standing standing{.control = std::move(control)};
  for (int rank = 0; rank < member.size; ++rank) standing.view.members.push_back({.id = rank});
  return standing;
}

// Waits for all ranks, because a rank that leaves before all are connected would appear unreachable to its peers.
void meet(const Member& member, const std::shared_ptr<Transport>& transport,
          const std::vector<std::string>& addresses) {
  const auto refuse = [&](int peer, CommError::Kind kind, const std::string& why) {
    explain(member, peer, peer == member.rank ? "" : addresses[peer], kind, why);
  };
  try {
    ::gloo::BarrierOptions options(std::make_shared<Context>(transport));
    ::gloo::barrier(options);
  } catch (const Absent& absent) {
    refuse(absent.ranks.empty() ? member.rank : absent.ranks.front(), CommError::Kind::kTimeout, "timeout");
  } catch (const Lost& lost) {
    refuse(lost.rank, CommError::Kind::kPeerLost, lost.why);
  }
}

}  // namespace

std::shared_ptr<Transport> connect(const Member& member, std::shared_ptr<::gloo::transport::tcp::Device> device,
                                   const Exchange& exchange) {
  auto transport = std::make_shared<Transport>(std::move(device), member.rank, member.size, member.endpoint);
  transport->setTimeout(in_milliseconds(member.timeout));
  transport->set_check(member.lasting_check);
  const bool alone = member.size == 1;
  Descriptor listener = alone ? Descriptor() : listen(member);
  const auto addresses = exchange(alone ? "" : address_of(listener.get()));
  transport->set_standing(member.standing.control ? member.standing : new_standing(member, addresses, listener));
  if (alone) return transport;
  for (int peer = 0; peer < member.size; ++peer) {
    if (peer != member.rank) transport->createPair(peer);
  }
  // A rank connects to those before it, and then accepts those after it, so that no cycle of ranks can wait for each
  // other.
  const auto deadline = Clock::now() + in_milliseconds(member.timeout);
  for (int peer = 0; peer < member.rank; ++peer) {
    transport->link(peer).adopt(dial(member, peer, addresses[peer], deadline));
  }
  accept_peers(member, std::move(listener), *transport, addresses, deadline);
  meet(member, transport, addresses);
  return transport;
}

Exchange exchange_through(Store& store, const Member& member) {
  return [&store, member](const std::string& own) {
    const auto key = [](int rank) { return "gloo/" + std::to_string(rank); };
    store.set(key(member.rank), own);
    std::vector<std::string> texts;
    for (int rank = 0; rank < member.size; ++rank) {
      try {
        texts.push_back(store.get(key(rank)));
      } catch (const CommError& error) {
        if (error.kind() != CommError::Kind::kTimeout) throw;
        throw CommError(CommError::Kind::kTimeout,
                        where(member) + ": rank " + std::to_string(rank) + " did not connect: " + error.what());
      }
    }
    return texts;
  };
}

}  // namespace phalanx::gloo
