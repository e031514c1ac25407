// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Exit statuses of tools that train; scripts rely on them.
enum ExitStatus : int {
  kDone = 0,
  kFailed = 1,             // error in training: data, arithmetic, a file that cannot be written
  kUsage = 2,              // command line or configuration
  kRankDied = 3,           // a rank ended without giving a reason, by a signal or an unexpected exit; or a parameter
                           // server that does not belong to the job is lost
  kExpectationFailed = 4,  // the run has completed, but its results are not what the config expects
  kTooFewRanks = 5,        // fewer ranks than faults.min_ranks are left; the run is saved and can be resumed
  kTimeUp = 124,           // train.max_seconds have passed; the run is saved and can be resumed
  kInterrupted = 130,
};

/// Returns true if a rank that ends with `status` has failed. A rank that was stopped has not.
inline bool is_failure(int status) { return status != kDone && status != kTimeUp && status != kInterrupted; }

}  // namespace phalanx
