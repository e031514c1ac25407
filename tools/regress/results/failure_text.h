// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/history/records.h"

namespace phalanx::regress {

/// Returns the reason of a failure that a run printed to standard error, in one line of at most 500 bytes: the text of
/// its framed report, or else its last line. Empty if it printed nothing.
std::string reason_in(const std::string& errors);

/// Returns a line for each expectation that was not met: "test.accuracy.min: wanted >= 0.97, got 0.953".
std::vector<std::string> unmet_lines(const std::vector<history::ExpectationResult>& expectations);

}  // namespace phalanx::regress
