// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace phalanx::exported {

/// Computes a size, or compares sizes. Throws std::exception for arguments of other types, division by 0, and a size
/// that does not fit in an int64.
using Arithmetic = c10::IValue (*)(const std::vector<c10::IValue>& arguments);

/// Returns the function that the target of a node computes if it is arithmetic on sizes, such as "_operator.add", and
/// null otherwise.
Arithmetic arithmetic_of(const std::string& target);

}  // namespace phalanx::exported
