// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "framework/comm/communicator.h"
#include "framework/comm/operations/call.h"

namespace phalanx {

/// Gathers the calls of all ranks and throws the same CommError::kMismatch on every rank unless all calls are equal.
/// Blocks; must be called in the body of an operation of `group`. `number` is the number of the operation. `note` adds
/// details that describe(call) lacks, such as the name of a custom reduction; messages show its first 47 bytes.
void compare_calls(Communicator& group, const Call& call, std::uint64_t number, const std::string& note);

/// Throws the same error unless the counts of an uneven all_to_all agree: each rank must send what its receiver
/// expects.
void compare_counts(Communicator& group, Counts output_counts, Counts input_counts, std::uint64_t number);

}  // namespace phalanx
