// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/address_for_peers.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/text.h"

namespace phalanx {
namespace {

bool link_local(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool is_loopback(const std::string& text) { return text.starts_with("127.") || text == "::1"; }

std::string to_text(const sockaddr& address) {
  char text[NI_MAXHOST] = {};
  const auto bytes = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::getnameinfo(&address, bytes, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

// Returns the addresses of this host's interfaces that are up, IPv4 first.
std::vector<LocalAddress> local_addresses() {
  std::vector<LocalAddress> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  for (const auto* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || link_local(*entry->ifa_addr)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    all.push_back({.interface = entry->ifa_name,
                   .text = to_text(*entry->ifa_addr),
                   .family = family,
                   .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  ::freeifaddrs(first);
  std::ranges::stable_sort(all, {}, [](const LocalAddress& address) { return address.family == AF_INET ? 0 : 1; });
  return all;
}

// Returns the addresses that this host's name resolves to, or none if it does not resolve.
std::vector<std::string> named_addresses() {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  std::vector<std::string> all;
  if (::getaddrinfo(host_name().c_str(), nullptr, &hints, &first) != 0) return all;
  for (const auto* entry = first; entry != nullptr; entry = entry->ai_next) all.push_back(to_text(*entry->ai_addr));
  ::freeaddrinfo(first);
  return all;
}

std::string address_of_interface(const std::vector<LocalAddress>& addresses, const std::string& interface) {
  const auto found = std::ranges::find(addresses, interface, &LocalAddress::interface);
  if (found != addresses.end()) return found->text;
  std::vector<std::string> names;
  for (const auto& address : addresses) {
    if (std::ranges::find(names, address.interface) == names.end()) names.push_back(address.interface);
  }
  throw ConfigError(host_name() + " has no network interface \"" + interface +
                    "\" that is up and has an address; it has " + join(names, ", "));
}

}  // namespace

std::string choose_address(bool one_host, const std::vector<LocalAddress>& local,
                           const std::vector<std::string>& named) {
  if (one_host) {
    const auto inward = std::ranges::find(local, true, &LocalAddress::loopback);
    if (inward != local.end()) return inward->text;
  }
  for (const auto& text : named) {
    if (!is_loopback(text) && std::ranges::find(local, text, &LocalAddress::text) != local.end()) return text;
  }
  const auto outward = std::ranges::find(local, false, &LocalAddress::loopback);
  return outward == local.end() ? "" : outward->text;
}

std::string address_for_peers(bool one_host, const std::string& interface) {
  const auto addresses = local_addresses();
  if (!interface.empty()) return address_of_interface(addresses, interface);
  const auto chosen = choose_address(one_host, addresses, one_host ? std::vector<std::string>() : named_addresses());
  if (!chosen.empty()) return chosen;
  if (one_host) {
    throw ConfigError(host_name() + " has no network address; bring up its loopback interface (ip link set lo up)");
  }
  throw ConfigError(host_name() + " has no address at which other hosts could reach it");
}

}  // namespace phalanx
