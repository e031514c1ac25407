// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace phalanx {

/// An address of an interface of this host that is up.
struct LocalAddress {
  std::string interface;
  std::string text;
  int family = AF_UNSPEC;
  bool loopback = false;
};

/// Chooses from `local`, which has IPv4 before IPv6: the first loopback address (127.0.0.1, or ::1 if there is no IPv4)
/// if all peers are on this host. Otherwise chooses the first of `named`, the addresses of the host's name, that is not
/// a loopback address, or else the first of `local` that is not one. Returns an empty text if no address fits.
std::string choose_address(bool one_host, const std::vector<LocalAddress>& local,
                           const std::vector<std::string>& named);

/// Returns an address of this host at which its peers reach it, as text: the first of `interface` if that is not empty,
/// else the address that choose_address() returns. Throws ConfigError if no address fits.
std::string address_for_peers(bool one_host, const std::string& interface = "");

}  // namespace phalanx
