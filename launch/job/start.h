// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "datasets/dataset.h"
#include "launch/job/job.h"

// What a person sees of a job until its first step.
namespace phalanx {

/// Tells what is about to run, and in which folder. `backend`: as chosen, or "auto" where that comes later.
void introduce(const Job& job, const RunFolder& folder, int ranks, const std::string& backend);

/// The config's dataset. Where it takes long to make or read, one process (`speaks`) tells that it goes on; and when
/// somebody asks for a stop meanwhile, this process ends with kInterrupted, since there is nothing to save yet.
Splits make_data(const Job& job, bool speaks);

/// Whether standard output ends at a terminal, maybe that of a launcher.
bool on_terminal();

}  // namespace phalanx
