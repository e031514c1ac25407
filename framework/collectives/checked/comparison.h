// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/comm/call.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Gathers the call of every rank and throws CommError::kMismatch, the same on all ranks, unless all are equal. Blocks;
/// for the body of an operation of `group`. `number`: of the operation; `note`: what describe(call) does not say, as
/// the name of a reduction; its first 47 bytes are shown.
void compare_calls(Communicator& group, const Call& call, std::uint64_t number, const std::string& note);

/// The same for the counts of an uneven all_to_all: what each rank sends must be what its receiver expects.
void compare_counts(Communicator& group, Counts output_counts, Counts input_counts, std::uint64_t number);

}  // namespace phalanx
