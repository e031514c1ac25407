// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/json.h"
#include "tools/history/records.h"
#include "tools/regress/results/run_metrics.h"
#include "tools/regress/suite/planned_case.h"

// Expectations that compare a run with others. Each function returns the result of one, with the wanted and the actual
// value.
namespace phalanx::regress {

/// Compares the training losses of a run with the losses of a reference, step by step, up to step `steps` (0: all). The
/// relative difference of each may be at most `tolerance`. Steps that only one of them has are errors.
history::ExpectationResult compare_losses(const MetricsLines& run, const MetricsLines& reference, double tolerance,
                                          std::int64_t steps);

/// Compares a run that was killed and resumed with the same run without that: all metrics after step `from`, and the
/// weights at the end, must be equal bit for bit.
history::ExpectationResult compare_resumed(const std::string& whole_folder, const std::string& resumed_folder,
                                           std::int64_t from);

/// Checks that `throughput`, of `ranks` ranks, is at least `least` times `ranks` times the throughput of one rank.
history::ExpectationResult check_scaling(double throughput, int ranks, double of_one_rank, double least);

/// Checks that `throughput` is at least `share` times the median of earlier nights, newest first. Fewer than
/// kFewestNights nights, or `wanted_nights` if that is less, have no median; the expectation is then met.
history::ExpectationResult check_median(double throughput, const std::vector<double>& earlier, double share,
                                        std::int64_t wanted_nights);

inline constexpr std::int64_t kFewestNights = 3;

/// Checks how many of the runs that chaos has disturbed have survived, by what it has written (its --json). Throws
/// DataError if that cannot be read.
history::ExpectationResult check_faults(const JsonValue& findings, const SurvivedFaults& wanted);

}  // namespace phalanx::regress
