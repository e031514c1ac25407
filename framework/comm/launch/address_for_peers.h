// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/launch/host_network.h"

namespace phalanx {

/// The address of this host at which its peers reach it.
struct OwnAddress {
  std::string text{};
  std::string interface{};
  std::string reason{};  // why this one, such as "the route to node1"

  bool empty() const { return text.empty(); }

  /// Returns a text for messages: "10.0.0.2 of eth0, the route to node1".
  std::string describe() const;
};

/// The facts from which the address follows.
struct AddressWish {
  bool one_host = false;  // all peers are on this host

  /// The interfaces to use, separated by commas: names, addresses of this host, or networks such as 10.0.0.0/24. The
  /// first of them that this host has is used. Empty: the address is derived.
  std::string interface{};

  /// The name or an address of a peer on another host, preferably that of rank 0. Empty: unknown.
  std::string peer{};
};

/// Returns the interfaces that the user has set: `configured` (framework.interface), or else PHALANX_INTERFACE, or else
/// Gloo's own variable GLOO_SOCKET_IFNAME. Empty: none is set.
std::string wanted_interface(const std::string& configured);

/// Returns the addresses at which other hosts may reach this one, best first: those to which the host's name resolves,
/// then all others, where bridges for containers come last. Loopback addresses are not among them.
std::vector<OwnAddress> outward_addresses(const HostNetwork& network);

/// Chooses the address: one of the wanted interface; the loopback address (127.0.0.1, or ::1 if there is no IPv4) if
/// all peers are on this host; the address from which this host sends to `peer`; or the first of outward_addresses().
/// Throws ConfigError, which lists the host's interfaces, if no address fits.
OwnAddress choose_address(const AddressWish& wish, const HostNetwork& network);

/// Does the same for this host.
OwnAddress address_for_peers(const AddressWish& wish);

}  // namespace phalanx
