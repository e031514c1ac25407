// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/base/descriptor.h"
#include "framework/base/error.h"

/// Stream sockets. None of them blocks, none survives exec, and none sends SIGPIPE if it is written with MSG_NOSIGNAL.
/// A TCP peer whose host has gone silent is noticed after about a minute, even if nothing is sent (keepalive).
///
/// An address is text: "host:port", "[::1]:port", "unix:/path", or "unix:@name" in the abstract namespace of Linux,
/// which leaves no file. All of these functions throw an Error with the address and the reason.
namespace phalanx {

/// No connection to an address could be made.
class CannotConnect : public Error {
 public:
  using Error::Error;
};

/// The host answers, but no process listens at the address: the one that did has ended.
class ConnectionRefused : public CannotConnect {
 public:
  using CannotConnect::CannotConnect;
};

/// Returns a socket that accepts connections. Port 0 takes a free one: see address_of(). Without a host (":7000") it
/// accepts them at all addresses of this machine, of IPv6 and IPv4.
Descriptor listen_at(const std::string& address);

/// Returns an established connection. Gives up after `timeout_seconds`. Throws CannotConnect, or ConnectionRefused if
/// all addresses that the name resolves to refuse the connection.
Descriptor connect_to(const std::string& address, double timeout_seconds);

/// Returns a socket that is being connected to the first address that the name resolves to. Does not block, unless the
/// host is a name. Throws what connect_to() throws, if it fails at once.
Descriptor begin_to_connect(const std::string& address);

/// Returns true once a socket that begin_to_connect() has returned for this address is connected. Does not block.
/// Throws what connect_to() throws; then the socket cannot be used.
bool has_connected(int socket, const std::string& address);

/// Returns the next pending connection of `listener`, or an invalid descriptor if no connection waits.
Descriptor accept_from(int listener);

/// Returns the actual address of a listening socket.
std::string address_of(int listener);

/// Returns the address of the other end of a connection, or an empty string if that end has gone.
std::string peer_of(int socket);

/// Returns advice for a peer that cannot be reached: "check that PEER runs, that SETTING is right and that no firewall
/// blocks the connection".
std::string connection_advice(const std::string& peer, const std::string& setting);

/// Returns true if the last call that failed need only be repeated, now or when the socket is ready.
bool not_ready();

}  // namespace phalanx
