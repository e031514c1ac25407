// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// Returns the operations (engine/watch/operation_count.h) of a step of training on `rows` samples: forward, loss and
/// backward. None for a task that trains in
/// turns (Task::turns()), whose steps differ. Throws ConfigError where model and samples do not fit.
std::optional<double> operations_of_step(const Workload& workload, const SampleSpec& sample, std::int64_t rows);

}  // namespace phalanx::bench_train
