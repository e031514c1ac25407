// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <functional>
#include <string>
#include <vector>

namespace phalanx {

/// An address of an interface of this host that is up.
struct LocalAddress {
  std::string interface;
  std::string text;
  int family = AF_UNSPEC;
  bool loopback = false;
  int prefix_bits = 0;  // length of the part that all addresses of its network share
};

/// Returns the addresses of this host's interfaces, IPv4 before IPv6, without link-local addresses.
std::vector<LocalAddress> local_addresses();

/// The network connections of this host. Tests replace them.
struct HostNetwork {
  std::vector<LocalAddress> addresses;  // local_addresses()

  /// Returns the addresses to which the host's own name resolves, for as long as the resolver takes. May be null.
  std::function<std::vector<std::string>()> named;

  /// Returns the address from which this host sends to `peer`, a name or an address. Returns an empty text if the name
  /// has no address or if there is no route.
  std::function<std::string(const std::string& peer)> source_towards;

  /// Returns the entry of `addresses` with this text, or null if there is none.
  const LocalAddress* find(const std::string& text) const;
};

/// Asks the system.
HostNetwork this_network();

/// Returns true if both addresses have the same family and the same first `bits` bits.
bool in_same_network(const std::string& one, const std::string& other, int bits);

/// Returns "host:port", or "[host]:port" if the host is an IPv6 address, with brackets or without.
std::string with_port(const std::string& host, int port);

}  // namespace phalanx
