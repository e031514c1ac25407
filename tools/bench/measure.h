#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/bench/options.h"
#include "tools/bench/subject.h"

namespace phalanx::bench {

/// One line of the result.
struct Row {
  std::string op, backend, memory;
  int ranks = 0;
  std::int64_t bytes = 0;
  double p50_us = 0, p90_us = 0;  // of one operation, on the slowest rank
  double bus_gb_s = 0;            // bytes that the median moves over the busiest link, in 10^9 a second
};

struct Result {
  std::vector<Row> rows;
  double round_trip_ns = 0;  // median of the first backend's barrier: how near the cores were
};

/// What is measured, by name as in --backends.
using Subjects = std::map<std::string, std::unique_ptr<Subject>>;

/// Measures every combination of the options, in rounds in which subjects and memories take turns, so that a change of
/// the machine's mood meets them all. `world` makes ranks agree on figures. Collective; all ranks get the same result.
Result measure(const Options& options, const Subjects& subjects, Communicator& world);

}  // namespace phalanx::bench
