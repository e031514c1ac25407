// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/watch/html/run_record.h"
#include "engine/watch/run_folder.h"

namespace phalanx {

/// A run as a web page that needs nothing else: what it reached, curves of what was measured (of the first
/// kMostReadings readings), where the time of its steps went and who was slowest, config and provenance. Light or dark
/// as the reader has it.
std::string to_run_page(const RunRecord& run);

/// Writes it to the run folder's report.html. Throws DataError.
void write_run_page(const RunFolder& folder);

}  // namespace phalanx
