// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/chaos/row.h"
#include "tools/chaos/subject.h"

namespace phalanx::chaos {

/// Carries out one run with a fault below `folder`: starts it, causes the fault, resumes the run until it is complete
/// (at most three times), and compares its result with the reference. No process of it is left. Throws Error if this
/// process fails to do its own part.
Row run_trial(const Trial& trial, const Launching& launching, const Reference& reference, const std::string& folder);

}  // namespace phalanx::chaos
