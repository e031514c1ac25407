// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// The sharding of the positions of a sequence over the ranks of a group if each position attends to the positions
/// before it. The sequence has 2 P chunks of equal length, and rank r of P has chunks r and 2 P - 1 - r, one after the
/// other. Late positions attend to more keys than early ones, so this gives each rank the same work (Grattafiori et al.
/// 2024, The Llama 3 Herd of Models, arXiv:2407.21783, section 3.3.2).

/// Returns true if `length` positions can be sharded in this way.
bool can_shard_sequence(std::int64_t length, const Communicator& group);

/// Returns this rank's positions of a tensor that has all of them along `dim`; differentiable. Throws
/// std::invalid_argument if their number is not a multiple of 2 P. In a group of one rank, returns the tensor itself.
at::Tensor shard_sequence(const at::Tensor& whole, std::int64_t dim, const Communicator& group);

}  // namespace phalanx
