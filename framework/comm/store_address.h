#pragma once

#include <string>

#include "framework/base/descriptor.h"

namespace phalanx {

/// Returns where ranks connect to for a store at `host`: "localhost" as a number, so that all ranks of this host choose
/// the same of its two loopback addresses; any other name or address as it is.
std::string store_host(const std::string& host);

/// Returns a socket that listens at host:port and at no other address of this machine. It is not valid if `host` is a
/// name that stands for no address of this machine, as that of a service in a cluster does, or only for loopback
/// addresses, as a machine's own name in /etc/hosts does while other machines know its real address. Errno is
/// EADDRINUSE if the port is taken.
Descriptor listen_for_store(const std::string& host, int port);

}  // namespace phalanx
