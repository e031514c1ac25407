// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/comm/operations/call.h"

namespace phalanx {

/// Returns the operations that have several implementations: broadcast, reduce, all_reduce, reduce_scatter, all_gather,
/// gather, scatter, all_to_all.
std::span<const Op> selectable_ops();
bool is_selectable(Op op);

/// Returns "broadcast", ...
std::vector<std::string> selectable_op_names();

/// Returns the operation of that name, or Op::kNone for an unknown name.
Op selectable_op(const std::string& name);

}  // namespace phalanx
