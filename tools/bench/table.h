// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/bench/measure.h"

namespace phalanx::bench {

/// Returns a text for a terminal: a block of aligned columns for each operation. The last column is the time of a row
/// divided by the time of the first row with the same operation, size and memory, which belongs to the first backend.
std::string to_table(const Result& result);

/// Returns JSON:
/// {"round_trip_ns", "rows": [{op, backend, algorithm, ranks, bytes, memory, p50_us, p90_us, alg_gb_s, bus_gb_s}],
///  "absent": [{op, backend, algorithm, why}]}
std::string to_json(const Result& result);

}  // namespace phalanx::bench
