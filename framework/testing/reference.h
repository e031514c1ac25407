// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "framework/comm/operations/reduction.h"

namespace phalanx::testing {

/// Returns all dtypes that a Communicator supports.
std::span<const at::ScalarType> all_dtypes();

/// Returns all reductions for `dtype`: the named ones and two custom ones. "larger" is commutative; "compose" is not.
/// The latter composes affine maps x -> a x + b modulo 7, each encoded as 7 a + b, in the order of ranks. It does not
/// exist for bool.
std::vector<Reduction> reductions_of(at::ScalarType dtype);

/// Returns the input of `rank` in a test: one dimension of integers that differ between ranks and are so small that
/// sums and products over 8 ranks are exact in every dtype and order.
at::Tensor input_of(int rank, std::int64_t elements, at::ScalarType dtype, const Reduction& op = Reduction::kSum);

/// Returns the combination of input_of() of ranks 0 to `ranks` - 1, computed in one process with a plain loop.
at::Tensor reduced(int ranks, std::int64_t elements, at::ScalarType dtype, const Reduction& op);

/// Does the same for any ranks, in the given order.
at::Tensor reduced(std::span<const int> ranks, std::int64_t elements, at::ScalarType dtype, const Reduction& op);

}  // namespace phalanx::testing
