// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/config/experiment_config.h"
#include "engine/experiment/experiment.h"
#include "engine/hooks/run_times.h"

namespace phalanx {

/// Returns the text of summary.json. Measures the peak of matrix products on one core, if operations were counted.
std::string summary_text(const ExperimentConfig& config, const ExperimentContext& context,
                         const ExperimentResult& result, const RunTimes& times);

}  // namespace phalanx
