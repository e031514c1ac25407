// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"

/// Stream sockets: none of them blocks, none survives exec, and none sends SIGPIPE if it is written with MSG_NOSIGNAL.
/// Over TCP, a peer whose host has gone silent is noticed after about a minute even where nothing is sent (keepalive).
///
/// An address is text: "host:port", "[::1]:port", "unix:/path", or "unix:@name" in the abstract namespace of Linux,
/// which leaves no file behind. All of these throw Error with the address and the reason.
namespace phalanx {

/// There is no connection to an address.
class CannotConnect : public Error {
 public:
  using Error::Error;
};

/// The host is there, and nobody listens at the address: whoever did has ended.
class ConnectionRefused : public CannotConnect {
 public:
  using CannotConnect::CannotConnect;
};

/// A socket that accepts connections. Port 0 takes a free one: see address_of().
Descriptor listen_at(const std::string& address);

/// A connection, complete. Gives up after `timeout_seconds`. Throws CannotConnect, and ConnectionRefused
/// where all that the address stands for refuse it.
Descriptor connect_to(const std::string& address, double timeout_seconds);

/// The next connection that waits at `listener`; not valid() where none does.
Descriptor accept_from(int listener);

/// The address that a listening socket really has.
std::string address_of(int listener);

/// The address of the other end of a connection; empty if that end has gone.
std::string peer_of(int socket);

/// Whether the call that failed last need only be repeated, now or when the socket is ready.
bool not_ready();

}  // namespace phalanx
