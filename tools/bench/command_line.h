// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/bench/options.h"
#include "tools/command/arguments.h"

namespace phalanx::bench {

/// Parses --op, --backends, --against, --algorithms, --bytes, --memory, --device, --ranks, --rounds, --budget_ms,
/// --bind, --progress, --python, --json and --plot. Throws ConfigError.
Options parse_options(const Arguments& arguments);

}  // namespace phalanx::bench
