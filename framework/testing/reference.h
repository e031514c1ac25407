// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/reduction.h"

namespace phalanx::testing {

/// All dtypes that a Communicator moves.
std::span<const at::ScalarType> all_dtypes();

/// All reductions of `dtype`: those that have a name, and two of a user, "larger" (commutative) and "compose", which is
/// not: affine maps x -> a x + b modulo 7, each written as 7 a + b, composed in the order of ranks. bool has no maps.
std::vector<Reduction> reductions_of(at::ScalarType dtype);

/// What `rank` puts into a test: whole numbers, other ones on each rank, so small that sums and products over 8 ranks
/// are exact in every dtype and in every order. One dimension.
at::Tensor input_of(int rank, std::int64_t elements, at::ScalarType dtype, const Reduction& op = Reduction::kSum);

/// input_of() of ranks 0 to `ranks` - 1 combined, as one process computes it with a plain loop.
at::Tensor reduced(int ranks, std::int64_t elements, at::ScalarType dtype, const Reduction& op);

/// The same over any ranks, in this order.
at::Tensor reduced(std::span<const int> ranks, std::int64_t elements, at::ScalarType dtype, const Reduction& op);

}  // namespace phalanx::testing
