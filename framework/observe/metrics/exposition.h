// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "framework/observe/metrics/metrics_record.h"

namespace phalanx {

/// The data of a run that Prometheus reads: the last record of each split.
struct Exposition {
  std::string run;
  int ranks = 0;
  std::int64_t planned_steps = 0;               // of the whole run; 0: not known
  std::map<std::string, MetricsRecord> last{};  // by split
  std::int64_t restarts = 0;                    // of the job, after failures
  FailureCost failures{};                       // of the job
  double measured_at = 0;                       // time of the last measurement, in seconds since the epoch

  /// Replaces the last measurement of a split, and the cost of failures if the record has it.
  void add(const MetricsRecord& record);
};

/// The media type of to_text().
inline constexpr const char* kExpositionType = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the text format, version 0.0.4, with the metrics phalanx_run_info, phalanx_step,
/// phalanx_planned_steps, phalanx_restarts, phalanx_lost_ranks, phalanx_returned_ranks, phalanx_lost_seconds,
/// phalanx_goodput, phalanx_epoch, phalanx_metric{split,name}, phalanx_samples_per_second{split},
/// phalanx_learning_rate, phalanx_training_seconds, phalanx_step_seconds{phase,rank} and
/// phalanx_measured_timestamp_seconds. Every metric has HELP and TYPE. Metrics that were not measured yet are absent.
std::string to_text(const Exposition& exposition);

}  // namespace phalanx
