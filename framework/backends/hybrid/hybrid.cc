// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/hybrid/connect.h"
#include "framework/comm/launch/locality.h"

namespace phalanx {
namespace {

const bool hybrid_registered =
    Backends::global().add<hybrid::Config>("hybrid", "shared memory inside hosts, MPI or Gloo between them",
                                           BackendTraits{.shared = BackendTraits::Memory::kWithinHosts,
                                                         .mpi_without_store = true,
                                                         .shrinks = true,
                                                         .uses_levels = true,
                                                         .automatic = WorldKind::kHosts},
                                           [](const hybrid::Config& config, const ConnectOptions& options) {
                                             return hybrid::connect(config, options, host_key());
                                           });

}  // namespace
}  // namespace phalanx
