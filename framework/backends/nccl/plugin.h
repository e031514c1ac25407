// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "framework/backends/device/device_messages.h"
#include "framework/backends/device/peer_memory.h"
#include "framework/base/device_graph.h"
#include "framework/comm/communicator.h"

namespace phalanx::nccl {

/// The arguments of Connect, which creates an NCCL group of the ranks of `host`, in the same order.
struct ConnectRequest {
  CommunicatorPtr host;  // used by the ranks to agree
  int device = 0;        // device of this rank
  Seconds timeout{};     // timeout of every operation
  // Two ranks on one device, which NCCL does not support, are an error if this is null. Otherwise no group is created,
  // and this names the ranks.
  std::string* sharing = nullptr;
};

/// The plug-in's function "phalanx_nccl_connect". Collective. Throws ConfigError if two ranks share a device, unless
/// the request allows it, and CommError.
using Connect = void(const ConnectRequest& request, CommunicatorPtr& made);

/// The arguments of ConnectMessages.
struct MessagesRequest {
  CommunicatorPtr host;
  int device = 0;     // device of this rank
  Seconds timeout{};  // timeout of every message
};

/// The plug-in's function "phalanx_nccl_messages". Not collective.
using ConnectMessages = void(const MessagesRequest& request, std::shared_ptr<DeviceMessages>& made);

/// The plug-in's function "phalanx_cuda_peer_memory".
using MakePeerMemory = void(int device, std::shared_ptr<PeerMemory>& made);

/// Creates memory of a CUDA device that other ranks of the host can open by CUDA IPC. Defined only in the plug-in.
std::shared_ptr<PeerMemory> make_peer_memory(int device);

/// The plug-in's function "phalanx_cuda_make_graph".
using MakeGraph = void(std::unique_ptr<DeviceGraph>& made);

/// Returns a graph of the current CUDA device. Defined only in the plug-in.
std::unique_ptr<DeviceGraph> make_graph();

/// Returns a graph that records and replays with `graph`. Its replays are operations of the groups of NCCL that have
/// operations in it: the groups watch them, with their timeout and in their record, and a replay throws the CommError
/// of a group that is broken. The graph keeps these groups, since NCCL requires that graphs end before communicators.
/// Defined only in the plug-in.
std::unique_ptr<DeviceGraph> make_watched(std::unique_ptr<DeviceGraph> graph);

}  // namespace phalanx::nccl
