#pragma once

#include <string>

#include "tools/bench/measure.h"

namespace phalanx::bench {

/// For a terminal: aligned columns; the last says how many times longer a row takes than the first backend does on the
/// same operation, size and memory.
std::string to_table(const Result& result);

/// {"round_trip_ns", "rows": [{op, backend, ranks, bytes, memory, p50_us, p90_us, bus_gb_s}]}
std::string to_json(const Result& result);

}  // namespace phalanx::bench
