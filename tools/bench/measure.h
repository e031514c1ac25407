// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/bench/options.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {

/// One line of the result.
struct Row {
  std::string op, backend, algorithm, memory;
  int ranks = 0;
  std::int64_t bytes = 0;         // of the tensor that MeasuredOperation::bytes names
  double p50_us = 0, p90_us = 0;  // of one operation, on the slowest rank
  double alg_gb_s = 0;            // `bytes` over the median, in 10^9 a second
  double bus_gb_s = 0;            // the same of the bytes that cross the busiest link
};

/// What was asked for and has no row.
struct Absent {
  std::string op, backend, algorithm, why;

  bool operator==(const Absent&) const = default;
};

struct Result {
  std::vector<Row> rows;
  std::vector<Absent> absent;
  double round_trip_ns = 0;  // median of the first subject's barrier: how near the cores were
};

/// Measures every combination of the options, in rounds in which subjects, algorithms and memories take turns, so that
/// a change of the machine's mood meets them all; each round begins with another one. `world` makes ranks agree on
/// figures. Collective; all ranks get the same result.
Result measure(const Options& options, const Subjects& subjects, Communicator& world);

}  // namespace phalanx::bench
