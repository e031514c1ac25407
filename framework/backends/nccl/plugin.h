// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "framework/backends/device/peer_memory.h"
#include "framework/comm/communicator.h"

namespace phalanx::nccl {

/// The arguments of Connect, which makes a group of NCCL with the ranks of `host`, in their order.
struct ConnectRequest {
  CommunicatorPtr host;    // by which the ranks agree
  int device = 0;          // this rank's
  Seconds timeout{};       // of every operation
  bool may_share = false;  // two ranks with one device, which NCCL does not take, are no error: nothing is made
};

/// The plug-in's function "phalanx_nccl_connect". Collective. Throws ConfigError where two ranks have one device,
/// unless they may, and CommError.
using Connect = void(const ConnectRequest& request, CommunicatorPtr& made);

/// The plug-in's function "phalanx_cuda_peer_memory".
using MakePeerMemory = void(int device, std::shared_ptr<PeerMemory>& made);

/// Makes memory of a CUDA device that other ranks of the host open by CUDA IPC. Defined in the plug-in alone.
std::shared_ptr<PeerMemory> make_peer_memory(int device);

/// LibTorch's graphs of devices (at::GraphImplInterface) are those of CUDA from now on, which it has but does not
/// register itself. The plug-in's function "phalanx_cuda_register_graphs". Thread-safe.
void register_graphs();

}  // namespace phalanx::nccl
