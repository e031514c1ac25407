// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/descriptor.h"

namespace phalanx {

/// Returns the host to connect to for a store at `host`: for "localhost" the loopback address that this host has, of
/// IPv4 if it has both, so that all of its ranks choose the same one; any other name or address unchanged.
std::string store_host(const std::string& host);

/// Returns a socket that listens at host:port and at no other address of this machine. It is not valid if `host` is a
/// name without an address of this machine, such as the name of a service in a cluster. Nor is it valid if `host` has
/// only loopback addresses, as a machine's own name in /etc/hosts may, while other machines know its real address.
/// errno is EADDRINUSE if the port is taken.
Descriptor listen_for_store(const std::string& host, int port);

/// Returns a socket that listens at all addresses of this machine, of IPv6 and IPv4 if it has both. It is not valid if
/// that fails; errno is EADDRINUSE if the port is taken.
Descriptor listen_at_all_addresses(int port);

/// Returns the reason why a host's name has no address, or an empty string if it has one.
std::string why_unresolved(const std::string& host);

/// Returns the text of an error of the store `name`: the name of its host cannot be resolved.
std::string unresolved(const std::string& name, const std::string& host, const std::string& why);

/// Returns the text of an error of the store `name`: this rank cannot connect to it. It says where the store was looked
/// for: the addresses to which `host` resolves, and the interfaces of this host that lead there.
std::string unreachable(const std::string& name, const std::string& host, const std::string& why);

}  // namespace phalanx
