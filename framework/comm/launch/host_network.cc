// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/launch/host_network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "framework/base/descriptor.h"
#include "framework/base/environment.h"

namespace phalanx {
namespace {

using Found = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;
using Bytes = std::vector<std::uint8_t>;

bool link_local(const sockaddr& address) {
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

std::string text_of(const sockaddr& address) {
  char text[NI_MAXHOST] = {};
  const auto bytes = address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  if (::getnameinfo(&address, bytes, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

// Returns the bytes of the numeric part of a socket address.
Bytes bytes_of(const sockaddr& address) {
  const auto copy = [](const auto& number) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(&number);
    return Bytes(begin, begin + sizeof(number));
  };
  return address.sa_family == AF_INET ? copy(reinterpret_cast<const sockaddr_in&>(address).sin_addr)
                                      : copy(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

// Returns no bytes for a text that is not an address.
Bytes bytes_of(const std::string& text) {
  std::array<std::uint8_t, sizeof(in6_addr)> bytes{};
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return Bytes(bytes.begin(), bytes.begin() + 4);
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return Bytes(bytes.begin(), bytes.end());
  return {};
}

int prefix_of(const ifaddrs& entry) {
  if (entry.ifa_netmask == nullptr) return 0;
  sockaddr_storage mask{};
  const bool four = entry.ifa_addr->sa_family == AF_INET;
  const auto size = four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  std::copy_n(reinterpret_cast<const std::byte*>(entry.ifa_netmask), size, reinterpret_cast<std::byte*>(&mask));
  mask.ss_family = entry.ifa_addr->sa_family;  // some systems leave it out
  int bits = 0;
  for (const auto byte : bytes_of(reinterpret_cast<const sockaddr&>(mask))) bits += std::popcount(byte);
  return bits;
}

std::vector<LocalAddress> local_addresses() {
  std::vector<LocalAddress> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  for (const auto* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0 || link_local(*entry->ifa_addr)) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    all.push_back({.interface = entry->ifa_name,
                   .text = text_of(*entry->ifa_addr),
                   .family = family,
                   .loopback = (entry->ifa_flags & IFF_LOOPBACK) != 0,
                   .prefix_bits = prefix_of(*entry)});
  }
  ::freeifaddrs(first);
  std::ranges::stable_sort(all, {}, [](const LocalAddress& address) { return address.family == AF_INET ? 0 : 1; });
  return all;
}

Found look_up(const std::string& host, const char* port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* first = nullptr;
  if (::getaddrinfo(host.c_str(), port, &hints, &first) != 0) first = nullptr;
  return {first, &::freeaddrinfo};
}

std::vector<std::string> named_addresses() {
  std::vector<std::string> all;
  const Found found = look_up(host_name(), nullptr);
  for (const auto* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    all.push_back(text_of(*entry->ai_addr));
  }
  return all;
}

// Connecting a UDP socket sends nothing, but makes the system choose a route and with it the address of this end.
std::string source_of_route(const addrinfo& peer) {
  const Descriptor socket(::socket(peer.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::connect(socket.get(), peer.ai_addr, peer.ai_addrlen) != 0) return "";
  sockaddr_storage own{};
  socklen_t bytes = sizeof(own);
  const auto& address = reinterpret_cast<const sockaddr&>(own);
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0 || link_local(address)) return "";
  return text_of(address);
}

std::string source_towards(const std::string& peer) {
  const Found found = look_up(peer, "9");  // any port will do
  for (const auto* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    if (auto source = source_of_route(*entry); !source.empty()) return source;
  }
  return "";
}

}  // namespace

const LocalAddress* HostNetwork::find(const std::string& text) const {
  const auto found = std::ranges::find(addresses, text, &LocalAddress::text);
  return found == addresses.end() ? nullptr : &*found;
}

HostNetwork this_network() {
  return {.addresses = local_addresses(), .named = named_addresses(), .source_towards = &source_towards};
}

bool in_same_network(const std::string& one, const std::string& other, int bits) {
  const Bytes a = bytes_of(one), b = bytes_of(other);
  if (a.empty() || a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size() && bits > 0; ++i, bits -= 8) {
    const int unused = std::max(0, 8 - bits);
    if ((a[i] ^ b[i]) >> unused != 0) return false;
  }
  return true;
}

std::string with_port(const std::string& host, int port) {
  const bool six = host.find(':') != std::string::npos && !host.starts_with('[');
  return (six ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

}  // namespace phalanx
