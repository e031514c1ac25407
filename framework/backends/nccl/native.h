// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/operations/operation.h"

namespace phalanx::nccl {

/// Returns true if NCCL itself performs the operation on device tensors. Messages, which NCCL has without
/// tags, are not among them (messages.h). NCCL has no barrier, no
/// reductions of bool and int16, no bitwise or custom reductions, and no mean of integers that rounds toward zero.
bool has_native(const Operation& operation);

}  // namespace phalanx::nccl
