// SPDX-License-Identifier: Apache-2.0
// The part of the device `cuda` that is in every program.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "framework/backends/device/device_communicator.h"
#include "framework/backends/nccl/native_paths.h"
#include "framework/backends/nccl/plugin.h"
#include "framework/base/config/no_fields.h"
#include "framework/base/cuda.h"
#include "framework/base/device_graph.h"
#include "framework/base/log.h"
#include "framework/comm/device_kind.h"
#include "framework/comm/launch/locality.h"
#include "framework/comm/texts.h"

namespace phalanx {
namespace {

class CudaKind final : public DeviceKind {
 public:
  c10::DeviceType type() const override { return c10::kCUDA; }
  std::string missing() const override { return Cuda::global().missing(); }
  int count() const override {
    const int devices = Cuda::global().devices();
    const auto make = Cuda::global().function<nccl::MakeGraph>("phalanx_cuda_make_graph");
    set_device_graphs(c10::kCUDA, [make] {
      std::unique_ptr<DeviceGraph> made;
      make(made);
      return made;
    });
    return devices;
  }

  // Uses NCCL if each rank has its own device; otherwise copies between device memories if all ranks are on one host.
  CommunicatorPtr connect(CommunicatorPtr host, c10::Device own, Seconds timeout) const override {
    CommunicatorPtr group;
    std::shared_ptr<PeerGroup> peers;
    if (host->size() > 1) {
      const auto connect = Cuda::global().function<nccl::Connect>("phalanx_nccl_connect");
      std::string sharing;
      connect({.host = host, .device = own.index(), .timeout = timeout, .sharing = &sharing}, group);
      if (!group) peers = peers_of(*host, own);
      if (!group && host->rank() == 0) warn(sharing, *host, peers != nullptr);
    }
    return std::make_shared<DeviceCommunicator>(
        std::move(host), c10::kCUDA,
        DeviceCommunicator::Paths{.native = nccl::native_paths(std::move(group), own.index(), timeout),
                                  .peers = std::move(peers)});
  }

 private:
  static void warn(const std::string& sharing, const Communicator& host, bool peers) {
    const std::string text = sharing + ", but NCCL needs one for each rank, so all " + std::to_string(host.size()) +
                             " ranks exchange tensors ";
    if (peers) {
      log_info() << text << "through device memory that they open in each other";
    } else {
      log_warning() << text
                    << "through the memory of their hosts, which is much slower; start as many ranks on a host as "
                    << "it has devices";
    }
  }

  static std::shared_ptr<PeerGroup> peers_of(Communicator& host, const c10::Device& own) {
    const auto hosts = all_gather_text(host_key(), host);
    if (std::ranges::count(hosts, hosts[0]) < host.size()) return nullptr;
    std::shared_ptr<PeerMemory> memory;
    Cuda::global().function<nccl::MakePeerMemory>("phalanx_cuda_peer_memory")(own.index(), memory);
    auto peers = std::make_shared<PeerGroup>(std::move(memory));
    return peers->open_windows(host) ? peers : nullptr;
  }
};

const bool cuda_device_registered = DeviceKinds::global().add<NoFields>(
    "cuda", "NVIDIA GPUs",
    [](const NoFields&) -> std::shared_ptr<const DeviceKind> { return std::make_shared<CudaKind>(); });

}  // namespace
}  // namespace phalanx
