// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

/// Out-of-place variants of the in-place operations of Communicator: the input is only read. It is read when the
/// operation's turn comes, so it may be the output of an operation that was launched earlier. Input and output have the
/// same dtype and number of elements. They may be the same memory, but must not overlap in part. Everything else,
/// including errors, is as in Communicator: arguments that no rank could accept throw std::invalid_argument from the
/// call.
///
///   Work work = all_reduce(world, mean, local, Reduction::kMean);
namespace phalanx {

/// Combines the inputs of all ranks into `output` on every rank.
Work all_reduce(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, Reduction op);

/// Combines the inputs of all ranks into `output` of the root. Other ranks ignore `output`, which may be undefined
/// there.
Work reduce(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, Reduction op, int root);

/// Copies the root's `input` to `output` on every rank. Other ranks ignore `input`, which may be undefined there.
Work broadcast(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, int root);

}  // namespace phalanx
