#pragma once

#include <string>

namespace phalanx {

/// An address of this host at which its peers reach it, as text: the loopback where all of them are on one host; the
/// first of `interface` where one is named; else the first of the host's name that is no loopback; else the first of
/// the first interface that is up and no loopback. IPv4 before IPv6. Throws ConfigError where there is none.
std::string address_for_peers(bool one_host, const std::string& interface = "");

}  // namespace phalanx
