#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/comm/communicator.h"
#include "tools/bench/options.h"

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

/// Measures every combination of the options on `worlds` (by backend), in rounds in which backends and memories take
/// turns, so that a change of the machine's mood meets them all. Collective; all ranks get the same result.
Result measure(const Options& options, const std::map<std::string, CommunicatorPtr>& worlds);

}  // namespace phalanx::bench
