// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// What ranks have in common that are near each other: keys for Hierarchy. Two processes are near if their keys are
/// equal.

/// The host, as far as processes share memory and a network there: host name, boot, and the namespaces of network and
/// process ids, so that two containers of a machine are two hosts. PHALANX_HOST_KEY, where it is set, takes its place:
/// a machine can play several hosts.
std::string host_key();

/// The boot and the namespace of process ids, whatever PHALANX_HOST_KEY says. A process id that a peer sends means the
/// same process here only if the peer's key is equal to this one.
std::string process_ids_key();

/// The NUMA node to which the calling thread is bound, by number; kUnbound where it may run on several, or the kernel
/// does not tell.
std::string numa_key();
inline constexpr const char* kUnbound = "unbound";

}  // namespace phalanx
