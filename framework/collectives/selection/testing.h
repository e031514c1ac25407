// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "framework/comm/call.h"

namespace phalanx::testing {

/// For every operation of which one can select, two algorithms that do it natively and count that they did: "counting",
/// which always suits, and "counting_even", which suits an even number of elements of the output. And for broadcast a
/// third one that no other operation has: "counting_broadcast".

/// How often this one ran, on all ranks of this process together, since the last forget_runs(). Thread-safe.
int times_run(Op op, const std::string& algorithm);
void forget_runs();

}  // namespace phalanx::testing
