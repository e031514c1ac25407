// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/config/experiment_config.h"
#include "engine/experiment/experiment.h"
#include "engine/hooks/run_times.h"
#include "framework/base/named_tensors.h"

namespace phalanx {

/// Writes the final files of a run on rank 0: the weights, summary.json and report.html, as the config asks. Then shows
/// its final metrics or its times on the console. Does nothing on other ranks. `weights`: all weights of the model, on
/// rank 0. Throws DataError if a file other than report.html cannot be written.
void write_results(const ExperimentConfig& config, const ExperimentContext& context, const ExperimentResult& result,
                   const RunTimes& times, const NamedTensors& weights);

}  // namespace phalanx
