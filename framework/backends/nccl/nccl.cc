// SPDX-License-Identifier: Apache-2.0
// The part of the backend that is in every program. It loads the plug-in, which contains NCCL.
#include <string>

#include "framework/backends/device/device_communicator.h"
#include "framework/backends/nccl/native_paths.h"
#include "framework/backends/nccl/plugin.h"
#include "framework/base/cuda.h"
#include "framework/comm/backend.h"

namespace phalanx {
namespace {

struct NcclConfig {
  std::string host = "auto";

  template <class V>
  void visit(V& v) {
    v("host", host, "backend of tensors on the CPU, messages and barriers; auto: shm on one host, hybrid otherwise");
  }
};

CommunicatorPtr connect_world(const NcclConfig& config, const ConnectOptions& options) {
  const auto connect = Cuda::global().function<nccl::Connect>("phalanx_nccl_connect");
  const int device = options.rank_info.local_rank % Cuda::global().devices();
  const WorldKind world = options.rank_info.one_host() ? WorldKind::kOneHost : WorldKind::kHosts;
  auto host = Backends::Choice(config.host == "auto" ? automatic_backend(world) : config.host).make(options);
  CommunicatorPtr native;
  connect({.host = host, .device = device, .timeout = options.timeout}, native);
  return std::make_shared<DeviceCommunicator>(
      std::move(host), c10::kCUDA,
      DeviceCommunicator::Paths{.native = nccl::native_paths(std::move(native), device, options.timeout)});
}

const bool nccl_registered = Backends::global().add<NcclConfig>(
    "nccl", "ranks are processes with a CUDA device each, connected by NCCL",
    [](const NcclConfig& config) {
      const auto shared =
          config.host == "auto" ? BackendTraits::Memory::kWithinHosts : backend_traits(config.host).shared;
      return BackendTraits{.shared = shared, .device = "cuda"};
    },
    &connect_world);

}  // namespace
}  // namespace phalanx
