// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation.h"

namespace phalanx::recording {

/// Returns the tensor that rank `rank` of a group contributes to an operation; undefined if it contributes none.
at::Tensor input_of(const Operation& operation, int rank);

/// Returns the tensor that holds the operation's result on rank `rank`; undefined if this rank gets none. With
/// `measured`, a root that sends its own tensor counts as receiving it.
at::Tensor result_of(const Operation& operation, int rank, bool measured);

/// Throws ConfigError if the memory is shared with other ranks: a recording cannot see their writes.
void refuse_shared(const Allocation& allocation, const Communicator& group);

}  // namespace phalanx::recording
