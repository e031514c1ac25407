// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace phalanx {

/// Reports the failure of a job without a supervising launcher, once for all of its ranks. Each rank that has failed
/// calls this after it has written its failure to `log_folder`. The first to call it prints the most likely cause, and
/// all of them remove the failures.
///
/// Waits up to 0.5 s for a primary failure while there are only secondary ones: a peer that knows the reason is about
/// to write it. `ranks` is the number of ranks of the job.
void report_once(const std::string& log_folder, int ranks);

}  // namespace phalanx
