// SPDX-License-Identifier: Apache-2.0
// Backends that nothing but tests know: what a config may do with them follows from their traits.
#include <string>

#include "framework/base/config/no_fields.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

bool plant(const std::string& name, const BackendTraits& traits) {
  return Backends::global().add<NoFields>(name, "for tests", traits,
                                          [](const NoFields&, const ConnectOptions&) { return CommunicatorPtr(); });
}

using Memory = BackendTraits::Memory;
const bool planted =
    plant("by_messages", {}) && plant("by_messages_of_hosts", {.connects_hosts = true, .shrinks = true}) &&
    plant("in_hosts", {.shared = Memory::kWithinHosts, .shrinks = true, .automatic = WorldKind::kHosts}) &&
    plant("in_memory", {.shared = Memory::kAll, .shrinks = true, .automatic = WorldKind::kOneHost}) &&
    plant("threads_too", {.threads = true}) && plant("by_mpi", {.mpi = true, .shrinks = true});

}  // namespace
}  // namespace phalanx
