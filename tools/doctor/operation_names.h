// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx::doctor {

/// Rows of the table of operations: every one of Communicator, in the order of its header. operations.h proves them.
inline constexpr const char* kOperationNames[] = {
    "broadcast",  "reduce",  "all_reduce", "reduce_scatter", "all_gather", "gather", "scatter", "all_to_all",
    "send, recv", "barrier", "run",        "split",          "allocate",
};

inline constexpr const char* kNotInThisBuild = "not in this build";

}  // namespace phalanx::doctor
