// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "framework/base/error.h"

namespace phalanx {

/// The end of a run with fewer ranks than faults.min_ranks, after it was saved.
class TooFewRanks : public Error {
 public:
  using Error::Error;
};

/// Writes the exception that ended rank `rank` to `log_folder` as the rank's failure (see failure.h), as a secondary
/// one if it is a CommError caused by another rank's failure. `log` is the rank's log file, or empty. Ends this process
/// instead if it has no lease any more (end_without_lease()).
///
/// Returns the exit status for the rank: kUsage for ConfigError, kRankDied for ps::ServerLost, kExpectationFailed for
/// ExpectationError, kTooFewRanks for TooFewRanks, and kFailed for anything else.
int record_exception(const std::exception_ptr& error, int rank, const std::string& log_folder, const std::string& log);

}  // namespace phalanx
