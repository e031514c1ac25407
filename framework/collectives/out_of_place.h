// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/communicator.h"

/// The in-place operations of Communicator with input and output apart. The input is only read; it is read when the
/// operation's turn comes, so it may be the output of one that was launched before. Input and output have the same
/// dtype and number of elements; they may be the same memory, but must not overlap in part. Everything else is as in
/// Communicator, errors too: what no rank could accept is an std::invalid_argument from the call.
///
///   Work work = all_reduce(world, mean, local, Reduction::kMean);
namespace phalanx {

/// All ranks' inputs combined, in `output` of all ranks.
Work all_reduce(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, Reduction op);

/// All ranks' inputs combined, in root's `output`, which is ignored elsewhere and may be undefined there.
Work reduce(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, Reduction op, int root);

/// Root's `input`, in `output` of all ranks. The input is ignored elsewhere and may be undefined there.
Work broadcast(const CommunicatorPtr& group, at::Tensor output, at::Tensor input, int root);

}  // namespace phalanx
