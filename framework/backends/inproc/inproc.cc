// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "framework/backends/inproc/heap_fabric.h"
#include "framework/backends/shared_memory/communicator.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

struct InprocConfig {
  template <class V>
  void visit(V&) {}
};

const bool inproc_registered = Backends::global().add<InprocConfig>(
    "inproc", "ranks are threads of one process",
    BackendTraits{
        .threads = true, .shared = BackendTraits::Memory::kAll, .shrinks = true, .automatic = WorldKind::kOneRank},
    [](const InprocConfig&, const ConnectOptions& options) {
      return shared_memory::connect("inproc", options, std::make_unique<inproc::HeapFabric>());
    });

}  // namespace
}  // namespace phalanx
