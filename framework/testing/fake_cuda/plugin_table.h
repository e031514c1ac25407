// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

namespace phalanx {

struct CudaVersions;
class Communicator;
class DeviceGraph;
class DeviceMessages;
class PeerMemory;

namespace nccl {
struct ConnectRequest;
struct MessagesRequest;
}  // namespace nccl

namespace testing {

/// The plug-in's functions, which are linked into the test. Programs load libfake_cuda_plugin.so in place of the
/// plug-in; it passes its calls on to them.
struct PluginTable {
  void (*versions)(CudaVersions* versions);
  int (*device_count)(const char** why);
  void (*connect)(const nccl::ConnectRequest& request, std::shared_ptr<Communicator>& made);
  void (*connect_messages)(const nccl::MessagesRequest& request, std::shared_ptr<DeviceMessages>& made);
  void (*make_graph)(std::unique_ptr<DeviceGraph>& made);
  void (*make_peer_memory)(int device, std::shared_ptr<PeerMemory>& made);
};

}  // namespace testing
}  // namespace phalanx
