// SPDX-License-Identifier: Apache-2.0
#include "framework/base/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

#include "framework/base/error.h"

namespace phalanx {
namespace {

// Keepalive: a host that is silent for kIdleSeconds is probed every kProbeSeconds, and after kProbes probes without an
// answer its connection counts as broken.
constexpr int kIdleSeconds = 30, kProbeSeconds = 10, kProbes = 3;
constexpr std::string_view kUnix = "unix:";

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

struct UnixAddress {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

UnixAddress unix_address(const std::string& text) {
  const std::string path = text.substr(kUnix.size());
  UnixAddress unix{};
  unix.address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(unix.address.sun_path)) {
    throw Error(text + ": the name of a Unix socket has 1 to 107 characters");
  }
  std::memcpy(unix.address.sun_path, path.data(), path.size());
  const bool abstract = path.front() == '@';
  if (abstract) unix.address.sun_path[0] = '\0';
  unix.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1));
  return unix;
}

Addresses resolve(const std::string& text, int flags) {
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) throw Error(text + ": expected host:port or unix:name");
  std::string host = text.substr(0, colon);
  const std::string port = text.substr(colon + 1);
  int number = -1;
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != port.data() + port.size() || number < 0 || number > 65535) {
    throw Error(text + ": expected a port from 0 to 65535 after the last colon");
  }
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = flags | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int problem = ::getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &found);
  if (problem != 0) throw Error(text + ": cannot resolve \"" + host + "\": " + ::gai_strerror(problem));
  return {found, &::freeaddrinfo};
}

[[noreturn]] void fail(const std::string& address, const char* doing) {
  throw Error("cannot " + std::string(doing) + " " + address + ": " + std::strerror(errno));
}

[[noreturn]] void fail_to_connect(const std::string& address, bool refused) {
  const std::string message = "cannot connect to " + address + ": ";
  if (refused) throw ConnectionRefused(message + std::strerror(ECONNREFUSED));
  throw CannotConnect(message + std::strerror(errno));
}

Descriptor open_socket(int family) {
  return Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Makes small messages leave at once and a host that is gone noticed. All of this fails for Unix sockets, which do not
// need it.
void set_up_tcp(int socket) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

// Returns an invalid descriptor if it fails; errno says why. A socket of IPv6 that listens at all addresses accepts
// connections of IPv4 too, whatever the system's default is.
Descriptor listen_on(int family, const sockaddr* where, socklen_t bytes) {
  Descriptor socket = open_socket(family);
  const int yes = 1, no = 0;
  if (!socket.valid()) return socket;
  if (family == AF_INET6) ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      ::bind(socket.get(), where, bytes) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    return Descriptor();  // closing the socket does not change errno unless it fails
  }
  return socket;
}

std::string text_of(const sockaddr_storage& storage, socklen_t bytes) {
  const auto* address = reinterpret_cast<const sockaddr*>(&storage);
  if (address->sa_family == AF_UNIX) {
    const auto& unix = reinterpret_cast<const sockaddr_un&>(storage);
    std::string name(unix.sun_path, bytes - offsetof(sockaddr_un, sun_path));
    if (!name.empty() && name.front() == '\0') name.front() = '@';
    while (!name.empty() && name.back() == '\0') name.pop_back();
    return std::string(kUnix) + name;
  }
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  ::getnameinfo(address, bytes, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
  const bool six = address->sa_family == AF_INET6;
  return (six ? "[" + std::string(host) + "]" : std::string(host)) + ":" + port;
}

// Returns a socket that is connected or is being connected, or an invalid descriptor if it fails; errno says why.
Descriptor begin(int family, const sockaddr* where, socklen_t bytes) {
  Descriptor socket = open_socket(family);
  if (!socket.valid() || ::connect(socket.get(), where, bytes) == 0 || errno == EINPROGRESS) return socket;
  return Descriptor();
}

// Waits for the end of an attempt to connect. Returns its error: 0 if the socket is connected, EINPROGRESS if the
// attempt has not ended in time.
int outcome_of(int socket, double timeout_seconds) {
  pollfd ready{.fd = socket, .events = POLLOUT, .revents = 0};
  int problem = EINPROGRESS;
  socklen_t size = sizeof(problem);
  if (::poll(&ready, 1, static_cast<int>(timeout_seconds * 1000)) > 0) {
    ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size);
  }
  return problem;
}

// Returns an invalid descriptor if it fails; errno says why.
Descriptor try_to_connect(int family, const sockaddr* where, socklen_t bytes, double timeout_seconds) {
  Descriptor socket = begin(family, where, bytes);
  if (!socket.valid()) return socket;
  const int problem = outcome_of(socket.get(), timeout_seconds);
  if (problem == 0) return socket;
  socket.close();
  errno = problem == EINPROGRESS ? ETIMEDOUT : problem;
  return socket;
}

}  // namespace

Descriptor listen_at(const std::string& address) {
  if (address.starts_with(kUnix)) {
    const auto unix = unix_address(address);
    auto socket = listen_on(AF_UNIX, reinterpret_cast<const sockaddr*>(&unix.address), unix.bytes);
    if (!socket.valid()) fail(address, "listen at");
    return socket;
  }
  const auto found = resolve(address, AI_PASSIVE);
  std::vector<const addrinfo*> entries;
  for (const auto* entry = found.get(); entry != nullptr; entry = entry->ai_next) entries.push_back(entry);
  // An address without a host means all addresses of this host. An IPv6 socket accepts connections to IPv4 addresses
  // too.
  if (address.starts_with(':')) {
    std::ranges::stable_sort(entries, {}, [](const auto* entry) { return entry->ai_family == AF_INET6 ? 0 : 1; });
  }
  for (const auto* entry : entries) {
    auto socket = listen_on(entry->ai_family, entry->ai_addr, entry->ai_addrlen);
    if (socket.valid()) return socket;
    if (errno == EADDRINUSE) break;
  }
  fail(address, "listen at");
}

Descriptor connect_to(const std::string& address, double timeout_seconds) {
  if (address.starts_with(kUnix)) {
    const auto unix = unix_address(address);
    auto socket =
        try_to_connect(AF_UNIX, reinterpret_cast<const sockaddr*>(&unix.address), unix.bytes, timeout_seconds);
    if (!socket.valid()) fail_to_connect(address, errno == ECONNREFUSED);
    return socket;
  }
  const auto found = resolve(address, 0);
  bool refused = true;
  for (const auto* entry = found.get(); entry != nullptr; entry = entry->ai_next) {
    auto socket = try_to_connect(entry->ai_family, entry->ai_addr, entry->ai_addrlen, timeout_seconds);
    if (!socket.valid()) {
      refused &= errno == ECONNREFUSED;
      continue;
    }
    set_up_tcp(socket.get());
    return socket;
  }
  fail_to_connect(address, refused);
}

Descriptor begin_to_connect(const std::string& address) {
  const auto begun = [&](int family, const sockaddr* where, socklen_t bytes) {
    Descriptor socket = begin(family, where, bytes);
    if (!socket.valid()) fail_to_connect(address, errno == ECONNREFUSED);
    return socket;
  };
  if (address.starts_with(kUnix)) {
    const auto unix = unix_address(address);
    return begun(AF_UNIX, reinterpret_cast<const sockaddr*>(&unix.address), unix.bytes);
  }
  const auto found = resolve(address, 0);
  return begun(found->ai_family, found->ai_addr, found->ai_addrlen);
}

bool has_connected(int socket, const std::string& address) {
  const int problem = outcome_of(socket, 0);
  if (problem == EINPROGRESS) return false;
  errno = problem;
  if (problem != 0) fail_to_connect(address, problem == ECONNREFUSED);
  set_up_tcp(socket);
  return true;
}

Descriptor accept_from(int listener) {
  Descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket.valid()) set_up_tcp(socket.get());
  return socket;
}

std::string address_of(int listener) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  if (::getsockname(listener, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) {
    fail("a socket", "get the address of");
  }
  return text_of(storage, bytes);
}

std::string peer_of(int socket) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(storage);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return "";
  return text_of(storage, bytes);
}

std::string connection_advice(const std::string& peer, const std::string& setting) {
  return "check that " + peer + " runs, that " + setting + " is right and that no firewall blocks the connection";
}

bool not_ready() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace phalanx
