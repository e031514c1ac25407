// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// Exit statuses of tools that train; scripts rely on them.
enum ExitStatus : int {
  kDone = 0,
  kFailed = 1,    // an error in training: data, arithmetic, a file that cannot be written
  kUsage = 2,     // command line or configuration
  kRankDied = 3,  // a rank ended without saying why: a signal, an unexpected exit; or a parameter server that belongs
                  // to no job is gone
  kTimeUp = 124,  // train.max_seconds have passed; the run is saved, and can go on
  kInterrupted = 130,
};

}  // namespace phalanx
