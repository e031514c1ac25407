// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/watch/html/run_record.h"

namespace phalanx {

/// One number that sums up a run.
struct Figure {
  std::string name;  // "test accuracy"
  std::string text;  // "97.50 %"
};

/// What the run reached and how fast: its last tests, samples per second, steps, ranks, time. Of a run that has not
/// ended, what there is.
std::vector<Figure> figures_of(const RunRecord& run);

/// "lenet on digits · strategy sharded · 2 ranks", as far as it is known.
std::string subject_of(const RunRecord& run);

/// "test loss 0.01664, accuracy 99.55 %": the first readings of the last test; empty without any.
std::string result_of(const RunRecord& run);

/// As its config calls it, or the name of its folder.
std::string name_of(const RunRecord& run);

}  // namespace phalanx
