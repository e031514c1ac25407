// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/diagnosis.h"

namespace phalanx::doctor {

/// For a terminal of 100 columns. `color`: with escape sequences for what is well and what is not.
std::string to_text(const Diagnosis& found, bool color);

/// {"machine", "capabilities", "libraries": [{name, linked, loaded, path}], "torch_build": [...],
///  "operations": [{operation, backend, device, status}], "links": {"cores": [{first, second, round_trip_ns}],
///  "copy_gb_s", "backends": [{backend, round_trip_us, message_gb_s, all_reduce_gb_s}]},
///  "kernels": {"vectors", "matrix_peak", "table": [{operators, tensors, code, reason}]},
///  "algorithms": {operation: [{name, about}]}, "notes": [...]}
std::string to_json(const Diagnosis& found);

/// Returns a sentence for each finding that will cost time or trouble, with what to do about it.
std::vector<std::string> notes_on(const Diagnosis& found);

}  // namespace phalanx::doctor
