// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/own_address.h"

#include <optional>

#include "framework/comm/launch/locality.h"
#include "framework/comm/launch/peer_network.h"

namespace phalanx {
namespace {

std::string key_of_address(int rank) { return "address/" + std::to_string(rank); }

}  // namespace

OwnAddress find_own_address(Store& store, const RankInfo& rank_info, const std::string& first_host,
                            const std::string& interface) {
  const int rank = rank_info.rank;
  if (rank_info.one_host()) return address_for_peers({.one_host = true, .interface = interface});
  const HostNetwork network = this_network();
  if (rank == 0) store.set(key_of_address(0), describe_host(interface, network).to_text());
  const auto entry_of = [&](int other) { return HostEntry::from_text(store.get(key_of_address(other))); };
  std::optional<OwnAddress> own = address_towards(entry_of(0), first_host, interface, network);
  if (rank > 0) {
    HostEntry entry{.key = host_key()};
    if (own) entry.addresses.push_back(own->text);
    store.set(key_of_address(rank), entry.to_text());
  }
  // This rank is on the host of rank 0. The first rank on another host knows the network in between.
  for (int other = 1; other < rank_info.size && !own; ++other) {
    if (other != rank) own = address_towards(entry_of(other), "", interface, network);
  }
  return own ? *own : address_for_peers({.one_host = true, .interface = interface});
}

}  // namespace phalanx
