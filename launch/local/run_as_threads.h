// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "launch/local/launch_local.h"

namespace phalanx {

/// Runs all ranks of LocalLaunch::threads as threads of this process, which is a child of the launcher, and returns the
/// most serious of their statuses. Records their exceptions. If a rank fails without which the others do not go on, or
/// if only ranks are left that the others have noted as lost, which may hang for ever, this process ends soon
/// (EndAfterFailure), whether or not this function has returned.
int run_as_threads(const LocalLaunch& options, const std::function<int(int rank)>& body);

}  // namespace phalanx
