// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/diagnosis.h"

namespace phalanx::doctor {

/// Returns a text for a terminal of 100 columns. `color`: mark good and bad findings with escape sequences.
std::string to_text(const Diagnosis& found, bool color);

/// Returns JSON:
/// {"machine", "capabilities", "automatic": [{ranks, backend, reason, here}], "libraries": [{name, linked, loaded,
/// path}], "torch_build": [...],
///  "operations": [{operation, backend, device, status}], "links": {"cores": [{first, second, round_trip_ns}],
///  "copy_gb_s", "backends": [{backend, round_trip_us, message_gb_s, all_reduce_gb_s}]},
///  "kernels": {"vectors", "matrix_peak", "table": [{operators, tensors, code, reason}]},
///  "algorithms": {operation: [{name, about}]}, "notes": [...]}
std::string to_json(const Diagnosis& found);

/// Returns a sentence for each finding that costs time or causes trouble, with advice.
std::vector<std::string> notes_on(const Diagnosis& found);

}  // namespace phalanx::doctor
