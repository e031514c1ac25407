// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "framework/backends/device/peer_memory.h"

namespace phalanx::nccl {

/// The plug-in's function "phalanx_cuda_peer_memory".
using MakePeerMemory = void(int device, std::shared_ptr<PeerMemory>& made);

/// What it makes: memory of a CUDA device that other ranks of the host open by CUDA IPC. In the plug-in alone.
std::shared_ptr<PeerMemory> make_peer_memory(int device);

}  // namespace phalanx::nccl
