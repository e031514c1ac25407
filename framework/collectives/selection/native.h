#pragma once

#include <span>
#include <string>
#include <vector>

#include "framework/collectives/algorithm.h"
#include "framework/comm/call.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// The operations that can be done in several ways: broadcast, reduce, all_reduce, reduce_scatter, all_gather, gather,
/// scatter, all_to_all.
std::span<const Op> selectable_ops();

/// "broadcast", ...
std::vector<std::string> selectable_op_names();

/// The operation of that name; Op::kNone for none of them.
Op selectable_op(const std::string& name);

/// Launches the group's own way of a selectable operation. Errors as those of the operation; other operations throw
/// std::invalid_argument.
Work launch_native(Communicator& group, Op op, const Arguments& arguments);

}  // namespace phalanx
