// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/communicator.h"

namespace phalanx::nccl {

/// What the program asks of the plug-in: a group of NCCL with the ranks of `host`, in their order.
struct ConnectRequest {
  CommunicatorPtr host;    // by which the ranks agree
  int device = 0;          // this rank's
  Seconds timeout{};       // of every operation
  bool may_share = false;  // two ranks with one device, which NCCL does not take, are no error: nothing is made
};

/// The plug-in's function "phalanx_nccl_connect". Collective. Throws ConfigError where two ranks have one device,
/// unless they may, and CommError.
using Connect = void(const ConnectRequest& request, CommunicatorPtr& made);

}  // namespace phalanx::nccl
