// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/comm/launch/address_for_peers.h"

namespace phalanx {

/// A rank's description of its host, from which the others choose an address that reaches it.
///
/// Rank 0 lists the addresses of its host. Ranks on other hosts choose the address of their route to it, and tell the
/// others which one it is. Ranks on rank 0's host then choose the address of their route to the first of those.
struct HostEntry {
  std::string key{};                     // host_key()
  std::vector<std::string> addresses{};  // best first

  std::string to_text() const;
  static HostEntry from_text(const std::string& text);
};

/// Returns the entry of this host with all addresses at which others may reach it: outward_addresses(), or the one of
/// `interface` if that is not empty (AddressWish). A host without any has its loopback address: its peers can only be
/// on the same machine. Throws ConfigError if there is none either.
HostEntry describe_host(const std::string& interface, const HostNetwork& network);

/// Returns the addresses of another host in the order in which this host should try them: those in a network of its own
/// first. Addresses that this host has itself, such as those of bridges for containers, are left out unless there are
/// no others.
std::vector<std::string> in_order_of_reach(const HostEntry& other, const HostNetwork& network);

/// Returns the address of this host for its peers, given the entry of a rank. `first_host` is the name or address at
/// which this rank has reached rank 0's host, if it knows one and the entry is rank 0's. Returns nothing if that rank
/// is on the same host, so that nothing follows from its entry. Throws as choose_address() does.
std::optional<OwnAddress> address_towards(const HostEntry& other, const std::string& first_host,
                                          const std::string& interface, const HostNetwork& network);

}  // namespace phalanx
