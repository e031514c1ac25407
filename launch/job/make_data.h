// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "datasets/dataset.h"
#include "launch/job/job.h"

namespace phalanx {

/// Returns the config's dataset. If it takes long to create or read, one process (`prints`) prints how long it has
/// taken. If a stop is requested in the meantime, this process ends with kInterrupted, since there is nothing to save
/// yet.
Splits make_data(const Job& job, bool prints);

}  // namespace phalanx
