// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/watch/html/run_record.h"
#include "engine/watch/run_folder.h"

namespace phalanx {

/// Returns a run as a web page that refers to no other files: its results, curves of the first kMaxMetrics metrics,
/// the time of its steps by phase, the slowest rank, config and provenance. It is light or dark as the reader prefers.
std::string to_run_page(const RunRecord& run);

/// Writes this page to the run folder's report.html. Throws DataError.
void write_run_page(const RunFolder& folder);

}  // namespace phalanx
