// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/operations/call.h"

namespace phalanx::testing {

/// Algorithms for tests, which run the operation natively and count their runs. Every selectable operation has
/// "counting", which always suits, and "counting_even", which suits outputs with an even number of elements. Broadcast
/// also has "counting_broadcast", a name that no other operation has.

/// Returns the number of runs of this algorithm on all ranks of this process since the last forget_runs(). Thread-safe.
int times_run(Op op, const std::string& algorithm);
void forget_runs();

}  // namespace phalanx::testing
