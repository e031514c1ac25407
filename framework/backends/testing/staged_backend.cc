// SPDX-License-Identifier: Apache-2.0
// A backend for the conformance suite: inproc with all CPU tensors treated as device tensors. All operations go through
// staging, with chunks so small that most tensors have several.
#include <memory>
#include <utility>

#include "framework/backends/device/device_communicator.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

struct StagedConfig {
  template <class V>
  void visit(V&) {}
};

const bool staged_backend_registered = Backends::global().add<StagedConfig>(
    "staged", "for tests: copies tensors through host memory", BackendTraits{.threads = true},
    [](const StagedConfig&, const ConnectOptions& options) -> CommunicatorPtr {
      auto host = Backends::Choice("inproc").make(options);
      return std::make_shared<DeviceCommunicator>(std::move(host), c10::kCPU,
                                                  DeviceCommunicator::Paths{.chunk_bytes = 4096});
    });

}  // namespace
}  // namespace phalanx
