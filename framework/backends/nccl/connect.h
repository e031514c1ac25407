// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <nccl.h>

#include <cstddef>

#include "framework/backends/nccl/group.h"

namespace phalanx::nccl {

/// Returns bytes as a tensor of the CPU, for messages.
at::Tensor bytes_of(const void* data, std::size_t size);

/// Throws CommError.
ncclUniqueId make_id();

/// Returns a non-blocking communicator of this rank and of the others that call this with the same id. Blocks until all
/// have, up to the member's timeout. Throws CommError.
ncclComm_t open_communicator(const ncclUniqueId& id, const Member& member);

}  // namespace phalanx::nccl
