#pragma once

#include <string>

#include "framework/base/descriptor.h"

/// Stream sockets: none of them blocks, none survives exec, and none sends SIGPIPE if it is written with MSG_NOSIGNAL.
///
/// An address is text: "host:port", "[::1]:port", "unix:/path", or "unix:@name" in the abstract namespace of Linux,
/// which leaves no file behind. All of these throw Error with the address and the reason.
namespace phalanx {

/// A socket that accepts connections. Port 0 takes a free one: see address_of().
Descriptor listen_at(const std::string& address);

/// A connection, complete. Gives up after `timeout_seconds`.
Descriptor connect_to(const std::string& address, double timeout_seconds);

/// The next connection that waits at `listener`; not valid() where none does.
Descriptor accept_from(int listener);

/// The address that a listening socket really has.
std::string address_of(int listener);

/// Whether the call that failed last need only be repeated, now or when the socket is ready.
bool not_ready();

}  // namespace phalanx
