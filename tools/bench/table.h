// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/bench/measure.h"

namespace phalanx::bench {

/// For a terminal: a block of aligned columns for each operation; the last says how many times longer a row takes than
/// the first row with the same operation, size and memory does, which is the first backend's.
std::string to_table(const Result& result);

/// {"round_trip_ns", "rows": [{op, backend, algorithm, ranks, bytes, memory, p50_us, p90_us, alg_gb_s, bus_gb_s}],
///  "absent": [{op, backend, algorithm, why}]}
std::string to_json(const Result& result);

}  // namespace phalanx::bench
