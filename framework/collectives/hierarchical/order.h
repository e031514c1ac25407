// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/hierarchy.h"

namespace phalanx::hierarchical {

/// Whether combining group by group gives what combining in the order of the ranks gives.
bool keeps_order(const Level& level, const Reduction& op);

/// Throws std::invalid_argument, in the name of `operation`, unless keeps_order().
void check_order(const char* operation, const Level& level, const Reduction& op);

/// What every step of a reduction does: a mean is summed by all steps, and divided once, after the last.
Reduction step_of(const Reduction& op);

/// Ends the reduction of these elements, over all ranks of the level's scope.
void finish(const Level& level, const at::Tensor& elements, const Reduction& op);

}  // namespace phalanx::hierarchical
