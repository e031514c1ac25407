// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/gloo/connect.h"

#include <gloo/barrier.h>
#include <gloo/transport/tcp/address.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/sockets.h"

namespace phalanx::gloo {
namespace {

using std::chrono::milliseconds;

milliseconds in_milliseconds(Seconds time) {
  return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(time));
}

std::string where(const Member& member) {
  return "connecting " + member.group + ", rank " + std::to_string(member.rank) + " of " + std::to_string(member.size);
}

// Returns the text of the address in the note of a peer, or an empty text if there is no such note.
std::string address_in(const std::string& note) {
  if (note.empty()) return "";
  return ::gloo::transport::tcp::Address(std::vector<char>(note.begin(), note.end())).str();
}

[[noreturn]] void explain(const Member& member, int peer, const std::string& address, const std::string& why) {
  const bool late = why.find("timeout") != std::string::npos;
  std::string text = where(member) + ": rank " + std::to_string(peer) + " cannot be reached";
  if (!address.empty()) text += " at " + address;
  text += " (" + why + ")";
  if (!member.address.empty()) text += "; this rank is at " + member.address;
  throw CommError(late ? CommError::Kind::kTimeout : CommError::Kind::kPeerLost,
                  text + "; " +
                      connection_advice(
                          "it", "the network interface (framework.interface, PHALANX_INTERFACE, GLOO_SOCKET_IFNAME)"));
}

// Waits for all ranks, because a rank that leaves before all are connected would appear unreachable to its peers.
void meet(const Member& member, const std::shared_ptr<Transport>& transport,
          const std::vector<std::string>& addresses) {
  const auto refuse = [&](int peer, const std::string& why) {
    explain(member, peer, peer == member.rank ? "" : address_in(addresses[peer]), why);
  };
  try {
    ::gloo::BarrierOptions options(std::make_shared<Context>(transport));
    ::gloo::barrier(options);
  } catch (const Absent& absent) {
    refuse(absent.ranks.empty() ? member.rank : absent.ranks.front(), "timeout");
  } catch (const Lost& lost) {
    refuse(lost.rank, lost.why);
  }
}

}  // namespace

std::shared_ptr<Transport> connect(const Member& member, std::shared_ptr<::gloo::transport::tcp::Device> device,
                                   const Exchange& exchange) {
  auto transport = std::make_shared<Transport>(std::move(device), member.rank, member.size);
  constexpr int kGlooWaitsTimes = 5;  // Gloo waits this many times the timeout for a connection
  transport->setTimeout(in_milliseconds(member.timeout / kGlooWaitsTimes));
  std::vector<std::string> notes(member.size);
  for (int peer = 0; peer < member.size; ++peer) {
    if (peer == member.rank) continue;
    const auto address = transport->createPair(peer)->address().bytes();
    notes[peer].assign(address.begin(), address.end());
  }
  const auto addresses = exchange(notes);
  // Connects in rank order and waits for one connection at a time, so that no cycle of ranks can wait for each other.
  for (int peer = 0; peer < member.size; ++peer) {
    if (peer == member.rank) continue;
    try {
      transport->link(peer).connect({addresses[peer].begin(), addresses[peer].end()});
    } catch (const std::exception& error) {
      explain(member, peer, address_in(addresses[peer]), text_of(error));
    }
  }
  transport->setTimeout(in_milliseconds(member.timeout));
  meet(member, transport, addresses);
  return transport;
}

Exchange exchange_through(Store& store, const Member& member) {
  return [&store, member](const std::vector<std::string>& notes) {
    const auto key = [](int from, int to) { return "gloo/" + std::to_string(from) + "/" + std::to_string(to); };
    for (int peer = 0; peer < member.size; ++peer) {
      if (peer != member.rank) store.set(key(member.rank, peer), notes[peer]);
    }
    std::vector<std::string> received(member.size);
    for (int peer = 0; peer < member.size; ++peer) {
      if (peer == member.rank) continue;
      try {
        received[peer] = store.get(key(peer, member.rank));
      } catch (const CommError& error) {
        if (error.kind() != CommError::Kind::kTimeout) throw;
        throw CommError(CommError::Kind::kTimeout,
                        where(member) + ": rank " + std::to_string(peer) + " did not connect: " + error.what());
      }
    }
    return received;
  };
}

}  // namespace phalanx::gloo
