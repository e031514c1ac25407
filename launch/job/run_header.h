// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "engine/run_folder.h"
#include "launch/job/job.h"

namespace phalanx {

/// Prints what is about to run, and in which folder. `backend` is the chosen one, or "auto" if it will be chosen later.
void print_run_header(const Job& job, const RunFolder& folder, int ranks, const std::string& backend);

/// Returns true if standard output is a terminal, even if only the launcher's is.
bool on_terminal();

}  // namespace phalanx
