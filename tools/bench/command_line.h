// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/bench/options.h"

namespace phalanx::bench {

/// Parses --op, --backends, --against, --algorithms, --bytes, --memory, --device, --ranks, --rounds, --budget_ms,
/// --bind, --progress, --python, --json and --plot. Throws ConfigError.
Options parse_options(int argc, char** argv);

}  // namespace phalanx::bench
