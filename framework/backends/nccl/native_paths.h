// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/backends/device/device_communicator.h"
#include "framework/comm/communicator.h"

namespace phalanx::nccl {

/// Returns what a group of NCCL does for a DeviceCommunicator on this rank's device: the operations of has_native(),
/// and messages. Throws the error of Cuda if the plug-in is missing.
DeviceCommunicator::Native native_paths(CommunicatorPtr group, int device, Seconds timeout);

}  // namespace phalanx::nccl
