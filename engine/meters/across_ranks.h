// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <span>

#include "framework/comm/communicator.h"

namespace phalanx {

// How meters bring together what ranks have measured. Collective, and the same result on all ranks.

/// Every number, by the sum of it over all ranks. One all-reduce for all runs, which are as long on all ranks.
void sum_over_ranks(std::initializer_list<std::span<std::int64_t>> runs, Communicator& group);

/// All ranks' elements, rank by rank: [n_r] on rank r -> [n_0 + n_1 + ...]. The ranks may have unequally many.
at::Tensor gather_ranks(const at::Tensor& elements, Communicator& group);

std::int64_t largest_of_ranks(std::int64_t number, Communicator& group);

}  // namespace phalanx
