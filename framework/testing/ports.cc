// SPDX-License-Identifier: Apache-2.0
#include "framework/testing/ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>
#include <stdexcept>

namespace phalanx::testing {
namespace {

constexpr int kFirst = 15'000, kLast = 32'000;

bool bind_to(int socket, int port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_any;  // accepts IPv4 as well
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

}  // namespace

SilentPort::SilentPort() : socket_(::socket(AF_INET6, SOCK_STREAM, 0)) {
  std::random_device random;
  std::uniform_int_distribution<int> ports(kFirst, kLast);
  for (int tries = 0; tries < 100; ++tries) {
    port_ = ports(random);
    if (bind_to(socket_, port_)) return;
  }
  throw std::runtime_error("no free port");
}

SilentPort::~SilentPort() { ::close(socket_); }

int free_port() { return SilentPort().port(); }

}  // namespace phalanx::testing
