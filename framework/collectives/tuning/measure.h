// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Returns "native" and the names of the algorithms that are measured for an operation that has several
/// (selectable_ops()): all but those for private memory.
std::vector<std::string> candidates_of(Op op);

/// Measures each candidate of `op` with float32 tensors of about `bytes` bytes (selection_bytes()). Returns the median
/// of the slowest rank in microseconds, in the order of candidates_of(); 0 for an algorithm that does not suit. Takes
/// some milliseconds, and for long operations about 30 of them. Collective and blocking; all ranks return the same.
///
/// Candidates are interleaved, so that a change in the machine's load affects all of them. One that takes more than
/// three times as long as the fastest at first is not measured any further.
std::vector<double> measure_candidates(const CommunicatorPtr& group, Op op, std::int64_t bytes);

}  // namespace phalanx
