// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include "framework/comm/mesh/hierarchy.h"

namespace phalanx::hierarchical {

/// Returns true if combining group by group gives the same result as combining in rank order.
bool keeps_order(const Level& level, const Reduction& op);

/// Throws std::invalid_argument, with the name `operation` in its message, unless keeps_order().
void check_order(const char* operation, const Level& level, const Reduction& op);

/// Returns the reduction that each step performs. For a mean, all steps compute the sum, which is divided once after
/// the last step.
Reduction step_of(const Reduction& op);

/// Finishes the reduction of these elements over all ranks of the level's scope.
void finish(const Level& level, const at::Tensor& elements, const Reduction& op);

}  // namespace phalanx::hierarchical
