// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace phalanx {

/// Writes the exception that ended rank `rank` to `log_folder` as the rank's failure (see failure.h), as a secondary
/// one if it is a CommError caused by another rank's failure. `log` is the rank's log file, or empty.
///
/// Returns the exit status for the rank: kUsage for ConfigError, kRankDied for ps::ServerLost, kExpectationFailed for
/// ExpectationError, and kFailed for anything else.
int record_exception(const std::exception_ptr& error, int rank, const std::string& log_folder, const std::string& log);

}  // namespace phalanx
