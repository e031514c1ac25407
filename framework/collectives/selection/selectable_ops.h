// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/comm/call.h"

namespace phalanx {

/// The operations that can be done in several ways: broadcast, reduce, all_reduce, reduce_scatter, all_gather, gather,
/// scatter, all_to_all.
std::span<const Op> selectable_ops();
bool is_selectable(Op op);

/// "broadcast", ...
std::vector<std::string> selectable_op_names();

/// The operation of that name; Op::kNone for none of them.
Op selectable_op(const std::string& name);

}  // namespace phalanx
