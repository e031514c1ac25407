// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "framework/comm/operation.h"

namespace phalanx::nccl {

/// Whether NCCL itself does such an operation on tensors of a device. It has no messages with tags, no barrier, no
/// reductions of bool and int16, none by bits and none of users' own, and no mean of integers that rounds toward zero.
bool has_native(const Operation& operation);

}  // namespace phalanx::nccl
