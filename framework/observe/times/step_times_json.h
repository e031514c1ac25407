// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "framework/observe/times/step_times.h"

namespace phalanx {

/// Returns the milliseconds of a step by phase, the mean over ranks: {"data": 0.01, "forward": 1.2, ...}. For
/// metrics.jsonl.
nlohmann::ordered_json means_to_json(const StepTimes& times);

/// Returns the spread over ranks for summary.json: {"steps": n, "phases": {"data": {"mean_ms", "least_ms",
/// "least_rank", "most_ms", "most_rank"}, ...}, "own_work": {...}, "whole": {...}, "straggler": "..."}.
nlohmann::ordered_json spreads_to_json(const StepTimes& times);

}  // namespace phalanx
