// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tools/bench/options.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {

/// One row of the result.
struct Row {
  std::string op, backend, algorithm, memory;
  int ranks = 0;
  std::int64_t bytes = 0;         // size of the tensor that MeasuredOperation::bytes names
  double p50_us = 0, p90_us = 0;  // time of one operation, on the slowest rank
  double alg_gb_s = 0;            // `bytes` divided by the median time, in 10^9 bytes per second
  double bus_gb_s = 0;            // the same for the bytes that cross the busiest link
};

/// A requested combination that has no row, with the reason.
struct Absent {
  std::string op, backend, algorithm, why;

  bool operator==(const Absent&) const = default;
};

struct Result {
  std::vector<Row> rows;
  std::vector<Absent> absent;
  double round_trip_ns = 0;  // median time of the first subject's barrier: shows how close the cores are to each other
};

/// Measures every combination of the options. Subjects, algorithms and memories are interleaved in rounds, so that a
/// change in the machine's load affects all of them; each round starts with a different combination. Ranks agree on
/// figures by `world`. Calls measured() after each operation with all rows so far. Collective; all ranks return the
/// same result.
Result measure(
    const Options& options, const Subjects& subjects, Communicator& world,
    const std::function<void(const Result&)>& measured = [](const Result&) {});

}  // namespace phalanx::bench
