// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tools/bench_train/options.h"

namespace phalanx::bench_train {

/// Reads the flags of bench_train. Throws ConfigError naming the flag and what it takes.
Options parse_options(int argc, char** argv);

}  // namespace phalanx::bench_train
