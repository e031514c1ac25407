// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "launch/failure/failure.h"

namespace phalanx {

/// Returns true if the others go on (faults.on_lost_rank: shrink) without rank `rank`, which has ended with this
/// ExitStatus (0: unknown) and has left this failure in `log_folder`. Before training has begun, they wait for each
/// other and have nothing to go on with. Some statuses say that all ranks end for the same reason: kUsage,
/// kExpectationFailed and kTooFewRanks. A rank that gives up on another one (Failure::secondary) is no loss, unless the
/// others have noted it as lost (mark_lost()): the one on which it gives up may hang for ever.
bool is_loss(int rank, int status, const std::optional<Failure>& failure, const std::string& log_folder);

/// Returns true if the others have noted in `log_folder` that they go on without this rank (mark_lost()).
bool is_noted_as_lost(int rank, const std::string& log_folder);

/// Returns the failure in `log_folder` that this rank has left.
std::optional<Failure> failure_left_by(int rank, const std::string& log_folder);

/// Returns the reason of a rank that was killed because it was stopped (SIGSTOP) for `lost_after` seconds.
std::string describe_stop(double lost_after);

}  // namespace phalanx
