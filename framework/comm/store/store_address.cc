// SPDX-License-Identifier: Apache-2.0
#include "framework/comm/store/store_address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "framework/base/sockets.h"
#include "framework/base/text.h"
#include "framework/comm/launch/host_network.h"

namespace phalanx {
namespace {

using Found = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Found resolve(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_flags = flags | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) found = nullptr;
  return {found, &::freeaddrinfo};
}

bool is_loopback(const addrinfo& address) {
  if (address.ai_family == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address.ai_addr)->sin6_addr);
  }
  return ntohl(reinterpret_cast<const sockaddr_in*>(address.ai_addr)->sin_addr.s_addr) >> 24 == 127;
}

// Makes a socket listen at an address. If it returns false, errno says why. IPV6_V6ONLY is turned off because an IPv6
// socket may otherwise not accept IPv4 connections, depending on the system.
bool listens_at(const Descriptor& socket, const addrinfo& address) {
  const int yes = 1, no = 0;
  if (address.ai_family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  return socket.valid() && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
         ::bind(socket.get(), address.ai_addr, address.ai_addrlen) == 0 && ::listen(socket.get(), SOMAXCONN) == 0;
}

// Returns "looked for it at 10.0.0.1 through eth0 (10.0.0.2)", with all addresses to which the host resolves.
std::string describe_search(const std::string& host) {
  const HostNetwork network = this_network();
  std::vector<std::string> places;
  const Found found = resolve(host, 9, 0);
  for (const auto* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    char address[NI_MAXHOST] = {};
    ::getnameinfo(entry->ai_addr, entry->ai_addrlen, address, sizeof(address), nullptr, 0, NI_NUMERICHOST);
    const std::string source = network.source_towards(address);
    const auto* own = network.find(source);
    places.push_back(std::string(address) +
                     (own ? " through " + own->interface + " (" + source + ")" : ", to which this host has no route"));
  }
  return places.empty() ? "it was looked for nowhere, since " + host + " has no address"
                        : "it was looked for at " + join(places, ", ");
}

}  // namespace

std::string store_host(const std::string& host) {
  if (host != "localhost") return host;
  for (const auto& own : local_addresses()) {
    if (own.text == "127.0.0.1" || own.text == "::1") return own.text;
  }
  return host;
}

// IPv6 comes first, because c10d's clients try it first.
Descriptor listen_for_store(const std::string& host, int port) {
  const Found literal = resolve(host, port, AI_NUMERICHOST);
  const Found found = literal ? Found(nullptr, &::freeaddrinfo) : resolve(host, port, 0);
  std::vector<const addrinfo*> addresses;
  for (const auto* entry = literal ? literal.get() : found.get(); entry != nullptr; entry = entry->ai_next) {
    if (literal || !is_loopback(*entry)) addresses.push_back(entry);
  }
  std::ranges::stable_sort(addresses, {}, [](const addrinfo* one) { return one->ai_family == AF_INET6 ? 0 : 1; });
  for (const auto* address : addresses) {
    Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listens_at(socket, *address)) return socket;
    if (errno == EADDRINUSE) return Descriptor();  // closing does not change errno unless it fails
  }
  errno = EADDRNOTAVAIL;
  return Descriptor();
}

Descriptor listen_at_all_addresses(int port) {
  for (const char* any : {"::", "0.0.0.0"}) {
    const Found address = resolve(any, port, AI_NUMERICHOST);
    if (!address) continue;
    Descriptor socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (listens_at(socket, *address)) return socket;
    if (errno == EADDRINUSE) break;
  }
  return Descriptor();
}

std::string why_unresolved(const std::string& host) {
  addrinfo* addresses = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &addresses);
  if (error != 0) return ::gai_strerror(error);
  ::freeaddrinfo(addresses);
  return "";
}

std::string unresolved(const std::string& name, const std::string& host, const std::string& why) {
  return name + ": cannot resolve the address " + host + " (" + why + "); correct MASTER_ADDR";
}

std::string unreachable(const std::string& name, const std::string& host, const std::string& why) {
  return name + ": cannot reach it; " + connection_advice("rank 0", "the address (MASTER_ADDR, MASTER_PORT)") + ": " +
         why + "; " + describe_search(host);
}

}  // namespace phalanx
