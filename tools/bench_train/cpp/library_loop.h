// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>

#include "tools/bench_train/cpp/job.h"

namespace phalanx::bench_train {

/// Trains with phalanx::DistributedDataParallel, whose strategy is the first option of the job, at the rank that the
/// environment names, in turns (turns.h). With the option "fused", phalanx::FusedOptimizer updates the parameters.
/// Returns when the input ends. Throws what the library throws.
void serve_with_library(const LoopJob& job, std::istream& in, std::ostream& out);

}  // namespace phalanx::bench_train
