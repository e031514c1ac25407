// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <span>

#include "framework/comm/communicator.h"

namespace phalanx {

// Functions by which meters combine the sums and counts of ranks. All are collective, with the same result on all
// ranks.

/// Replaces every number with its sum over all ranks. Makes one all-reduce for all spans, whose lengths must be the
/// same on all ranks.
void sum_over_ranks(std::initializer_list<std::span<std::int64_t>> spans, Communicator& group);

/// Concatenates the elements of all ranks in the order of ranks: [n_r] on rank r -> [n_0 + n_1 + ...]. Ranks may have
/// different numbers of elements.
at::Tensor gather_ranks(const at::Tensor& elements, Communicator& group);

std::int64_t largest_of_ranks(std::int64_t number, Communicator& group);

}  // namespace phalanx
