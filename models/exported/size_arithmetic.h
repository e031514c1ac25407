// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace phalanx::exported {

/// Computes a size, or compares sizes. Throws std::exception for arguments of other types, for a division by 0, and for
/// a size that an int64 cannot hold.
using Arithmetic = c10::IValue (*)(const std::vector<c10::IValue>& arguments);

/// Returns what the target of a node computes if that is arithmetic on sizes, as "_operator.add" is; otherwise null.
Arithmetic arithmetic_of(const std::string& target);

}  // namespace phalanx::exported
