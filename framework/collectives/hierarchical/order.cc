// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/hierarchical/order.h"

#include <stdexcept>
#include <string>

namespace phalanx::hierarchical {

bool keeps_order(const Level& level, const Reduction& op) { return op.commutative() || level.in_rank_order(); }

void check_order(const char* operation, const Level& level, const Reduction& op) {
  if (keeps_order(level, op)) return;
  throw std::invalid_argument(std::string("hierarchical ") + operation + ": " + op.name() +
                              " does not commute, and the groups of level \"" + level.name +
                              "\" do not consist of consecutive ranks; call the operation of " + level.scope->name());
}

Reduction step_of(const Reduction& op) { return op.kind() == Reduction::kMean ? Reduction::kSum : op; }

void finish(const Level& level, const at::Tensor& elements, const Reduction& op) {
  op.finish(elements.scalar_type(), elements.mutable_data_ptr(), elements.numel(), level.scope->size());
}

}  // namespace phalanx::hierarchical
