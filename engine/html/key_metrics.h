// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/html/run_record.h"

namespace phalanx {

/// A number that summarizes a run, as text.
struct KeyMetric {
  std::string name;  // "test accuracy"
  std::string text;  // "97.50 %"
};

/// Returns the results and the speed of a run: its last tests, samples per second, steps, ranks, time. If the run has
/// not ended, returns the numbers that exist so far.
std::vector<KeyMetric> key_metrics_of(const RunRecord& run);

/// Returns a text such as "lenet on digits · strategy sharded · 2 ranks". Unknown parts are missing.
std::string subject_of(const RunRecord& run);

/// Returns the first metrics of the last test, such as "test loss 0.01664, accuracy 99.55 %", or an empty string.
std::string result_of(const RunRecord& run);

/// Returns the name of the run in its config, or the name of its folder.
std::string name_of(const RunRecord& run);

}  // namespace phalanx
