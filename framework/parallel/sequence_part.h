// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// How the ranks of a group divide the positions of a sequence where each position looks at those before it: of 2 P
/// chunks of equal length, rank r of P has chunks r and 2 P - 1 - r, one behind the other. Late positions look at more
/// keys than early ones, so that each rank has as much to compute as any other (Grattafiori et al. 2024, The Llama 3
/// Herd of Models, arXiv:2407.21783, section 3.3.2).

/// Whether `length` positions can be divided so.
bool divides_sequence(std::int64_t length, const Communicator& group);

/// This rank's positions of a tensor that has all of them along `dim`; differentiable. std::invalid_argument where
/// their number is not a multiple of 2 P. A group of one rank: the tensor itself.
at::Tensor take_positions(const at::Tensor& whole, std::int64_t dim, const Communicator& group);

}  // namespace phalanx
