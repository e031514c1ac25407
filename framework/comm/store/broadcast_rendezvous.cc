// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/broadcast_rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/job_secret.h"
#include "framework/base/keyed_hash.h"
#include "framework/base/log.h"
#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/launch/peer_network.h"
#include "framework/comm/store/polling.h"
#include "framework/comm/store/store_address.h"

namespace phalanx {
namespace {

using Clock = std::chrono::steady_clock;

// The message that rank 0 broadcasts.
struct Invitation {
  std::string problem{};  // why rank 0 hosts no store; must be of one line
  int port = 0;
  std::string secret{};  // empty: all ranks have the secret of the job
  std::string host{};    // name of rank 0's host
  HostEntry entry{};

  std::string to_text() const {
    return problem + "\n" + std::to_string(port) + "\n" + secret + "\n" + host + "\n" + entry.to_text();
  }

  static Invitation from_text(const std::string& text) {
    Invitation invitation;
    std::istringstream lines(text);
    std::string port;
    std::getline(lines, invitation.problem);
    std::getline(lines, port);
    std::getline(lines, invitation.secret);
    std::getline(lines, invitation.host);
    std::ostringstream rest;
    rest << lines.rdbuf();
    invitation.entry = HostEntry::from_text(rest.str());
    invitation.port = std::atoi(port.c_str());
    return invitation;
  }
};

Descriptor listening_at(const std::string& interface, const HostEntry& entry) {
  Descriptor listener = interface.empty() ? listen_at_all_addresses(0) : listen_for_store(entry.addresses.front(), 0);
  if (!listener.valid()) throw Error(std::string("cannot listen: ") + std::strerror(errno));
  return listener;
}

int port_at(const Descriptor& listener) {
  const std::string address = address_of(listener.get());
  return std::stoi(address.substr(address.rfind(':') + 1));
}

// Returns the invitation of rank 0 and fills `listener`.
Invitation invite(const std::string& interface, Descriptor& listener) {
  Invitation invitation{.host = host_name()};
  try {
    invitation.entry = describe_host(interface, this_network());
    listener = listening_at(interface, invitation.entry);
    invitation.port = port_at(listener);
    if (!job_secret()) invitation.secret = random_text();
  } catch (const Error& error) {
    invitation.problem = error.what();
    std::ranges::replace(invitation.problem, '\n', ' ');
  }
  return invitation;
}

// Tries the addresses of rank 0's host, one after the other, until one accepts a connection.
std::string first_reached(const Invitation& invitation, const RankInfo& rank_info, Seconds timeout) {
  using std::chrono::milliseconds;
  constexpr Seconds kAttempt{3};
  const HostNetwork network = this_network();
  const auto addresses = in_order_of_reach(invitation.entry, network);
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(timeout);
  std::vector<std::string> problems;
  for (milliseconds nap{20}; problems.empty() || Clock::now() < deadline; nap = std::min(nap * 2, milliseconds(1000))) {
    problems.clear();
    for (const auto& address : addresses) {
      const Seconds left = std::clamp<Seconds>(deadline - Clock::now(), Seconds(0.1), kAttempt);
      try {
        if (connect_to(with_port(address, invitation.port), left.count()).valid()) return address;
      } catch (const Error& error) {
        const std::string source = network.source_towards(address);
        problems.push_back(std::string(error.what()) + (source.empty() ? ", no route" : ", from " + source));
      }
    }
    std::this_thread::sleep_for(std::min<Clock::duration>(nap, std::max(deadline - Clock::now(), Clock::duration(0))));
  }
  throw CommError(CommError::Kind::kTimeout,
                  "rank " + std::to_string(rank_info.rank) + " on " + host_name() + ": cannot reach rank 0 on " +
                      invitation.host + " within " + in_seconds(timeout) + "; it was looked for at all addresses of " +
                      "its host: " + join(problems, "; ") + "; " +
                      connection_advice("it", "the network interface (framework.interface, PHALANX_INTERFACE)"));
}

}  // namespace

Rendezvous rendezvous_by_broadcast(const RankInfo& rank_info, const Broadcast& broadcast, const std::string& interface,
                                   Seconds timeout) {
  Descriptor listener;
  const bool first = rank_info.rank == 0;
  const std::string text = first ? invite(interface, listener).to_text() : "";
  const Invitation invitation = Invitation::from_text(broadcast(text));
  if (!invitation.problem.empty()) {
    throw CommError(CommError::Kind::kSystem, "rank 0 on " + invitation.host + ": " + invitation.problem);
  }
  Rendezvous met{.store = nullptr, .rank = rank_info.rank, .size = rank_info.size};
  if (invitation.entry.key != host_key()) met.host = first_reached(invitation, rank_info, timeout);
  const std::string host = met.host.empty() ? invitation.entry.addresses.front() : met.host;
  log_info() << "rank 0 hosts a store for all ranks at " << with_port(host, invitation.port);
  met.store = make_tcp_store({.host = host,
                              .port = invitation.port,
                              .hosted_by = first ? StoreHost::kThisProcess : StoreHost::kPeer,
                              .ranks = rank_info.size,
                              .timeout = timeout,
                              .secret = invitation.secret.empty() ? job_secret() : invitation.secret,
                              .rank = rank_info.rank,
                              .listener = std::move(listener)});
  return met;
}

}  // namespace phalanx
