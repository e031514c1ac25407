#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tools/bench_train/workload.h"

namespace phalanx::bench_train {

/// Returns the floating-point operations of the matrix products, convolutions, recurrent layers and attention that
/// `compute` calls on this thread, gradients included: 2 for each multiplication and the addition of its result. They
/// follow from shapes alone. Fused attention counts as its products do when they are written out, over all keys, also
/// if it is causal, and without what it computes again for the gradient. Elementwise functions, norms, pooling and
/// updates do not count.
double count_operations(const std::function<void()>& compute);

/// Returns those of a step of training on `rows` samples: forward, loss and backward. None for a task that trains in
/// turns (Task::turns()), whose steps differ. Throws ConfigError where model and samples do not fit.
std::optional<double> operations_of_step(const Workload& workload, const SampleSpec& sample, std::int64_t rows);

}  // namespace phalanx::bench_train
