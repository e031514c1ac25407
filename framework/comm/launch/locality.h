// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Keys for Hierarchy that show which ranks are near each other. Two processes are near each other if their keys are
/// equal.

/// Returns a key for the host, in the sense that its processes share memory and a network: host name, boot id, and the
/// namespaces of network and process ids, so that two containers of one machine count as two hosts. PHALANX_HOST_KEY
/// overrides it, which lets one machine act as several hosts.
std::string host_key();

/// Returns a key made of the boot id and the namespace of process ids, regardless of PHALANX_HOST_KEY. A process id
/// that a peer sends means the same process here only if the peer's key is equal to this one.
std::string process_ids_key();

/// Returns the number of the NUMA node to which the calling thread is bound, or kUnbound if it may run on several or
/// the kernel does not report it.
std::string numa_key();
inline constexpr const char* kUnbound = "unbound";

}  // namespace phalanx
