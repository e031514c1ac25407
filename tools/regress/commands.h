// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/command/arguments.h"

namespace phalanx::regress {

/// Finds the commit that made a metric worse: `regress bisect`. Returns the exit status.
int bisect(const Arguments& arguments);

}  // namespace phalanx::regress
