// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// The data of a run that Prometheus reads: the last record of each split.
struct Exposition {
  std::string run;
  int ranks = 0;
  std::map<std::string, MetricsRecord> last{};  // by split
};

/// Returns the text format, version 0.0.4, with the metrics phalanx_run_info, phalanx_step, phalanx_epoch,
/// phalanx_metric{split,name}, phalanx_samples_per_second{split}, phalanx_learning_rate, phalanx_training_seconds and
/// phalanx_step_seconds{phase,rank}. Every metric has HELP and TYPE. Metrics that were not measured yet are absent.
std::string to_text(const Exposition& exposition);

}  // namespace phalanx
