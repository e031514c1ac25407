// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/bench_train/measure.h"

namespace phalanx::bench_train {

/// Returns a line about the machine and a table, either with aligned columns for a terminal or as Markdown. `base`: the
/// system that ratios refer to; empty: none.
std::string to_table(const std::vector<Row>& rows, const Machine& machine, const std::string& base, bool markdown);

/// Returns JSON:
/// {"base", "link", "processor", "vectors", "matrix_peak", "rows": [{workload, system, ranks, kernels,
///  samples_per_second, p10, p90, step_ms, backward_ms, busy_ms, ratio, ratio_to_no_communication, operations, of_peak,
///  hidden, hidden_of_waiting, seconds_to_loss, steps_to_loss}]}; null: not measured.
/// If a loss is requested, rows also have "losses", the training loss of every step.
std::string to_json(const std::vector<Row>& rows, const Machine& machine, const std::string& base,
                    const std::string& link);

}  // namespace phalanx::bench_train
