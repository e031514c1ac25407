// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/bench_train/measure.h"

namespace phalanx::bench_train {

/// A line about the machine, and aligned columns for a terminal, or Markdown. `base`: the system that ratios are to;
/// empty: none.
std::string to_table(const std::vector<Row>& rows, const Machine& machine, const std::string& base, bool markdown);

/// {"base", "link", "processor", "vectors", "matrix_peak", "rows": [{workload, system, ranks, kernels,
///  samples_per_second, p10, p90, step_ms, backward_ms, busy_ms, ratio, ratio_to_no_communication, operations, of_peak,
///  hidden, hidden_of_waiting, seconds_to_loss, steps_to_loss}]}; null: not measured.
///  Where a loss is asked for rows have "losses", the training loss of every step.
std::string to_json(const std::vector<Row>& rows, const Machine& machine, const std::string& base,
                    const std::string& link);

}  // namespace phalanx::bench_train
