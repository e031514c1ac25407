// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/config/scalar.h"
#include "framework/base/config/visitor.h"

namespace phalanx::config {

// Return a complaint about the value, or nothing if it is within the limits. Booleans have no limits.
std::optional<ValueProblem> check(const Limits& limits, bool value);
std::optional<ValueProblem> check(const Limits& limits, std::int64_t value);
std::optional<ValueProblem> check(const Limits& limits, double value);
std::optional<ValueProblem> check(const Limits& limits, const std::string& value);

/// Describes the limits: "at least 1", "above 0", "between 0 and 1", "auto, local or mpi". Empty if there are no
/// limits.
std::string describe(const Limits& limits);

}  // namespace phalanx::config
