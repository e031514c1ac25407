// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/operation.h"

namespace phalanx {

/// Return operations of `group` with checked arguments. For Communicator's functions, and for code that launches an
/// operation in another way. Each throws std::invalid_argument with the operation's name if no rank of a group could
/// take these arguments.
Operation checked_broadcast(const Communicator& group, at::Tensor tensor, int root);
Operation checked_reduce(const Communicator& group, at::Tensor tensor, Reduction op, int root);
Operation checked_all_reduce(const Communicator& group, at::Tensor tensor, Reduction op);
Operation checked_reduce_scatter(const Communicator& group, at::Tensor output, at::Tensor input, Reduction op,
                                 Counts counts);
Operation checked_all_gather(const Communicator& group, at::Tensor output, at::Tensor input, Counts counts);
Operation checked_gather(const Communicator& group, at::Tensor output, at::Tensor input, int root, Counts counts);
Operation checked_scatter(const Communicator& group, at::Tensor output, at::Tensor input, int root, Counts counts);
Operation checked_all_to_all(const Communicator& group, at::Tensor output, at::Tensor input, Counts output_counts,
                             Counts input_counts);
Operation checked_send(const Communicator& group, at::Tensor tensor, int peer, int tag);
Operation checked_recv(const Communicator& group, at::Tensor tensor, int peer, int tag);

/// Returns an Allocation, which refers to `sizes`. `op` is kAllocate or kAllocateShared.
Allocation checked_allocation(const Communicator& group, Op op, at::IntArrayRef sizes, at::TensorOptions options);

}  // namespace phalanx
