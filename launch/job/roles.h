// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/job/job.h"

namespace phalanx {

/// Does what this rank is there for: the job's body among the ranks that train, or serving them until all of them have
/// gone (`roles.server`). `context.world` is of all ranks. Collective. Returns the exit status. Throws ConfigError
/// where no rank is left to train.
int run_in_role(const Job& job, RankContext context);

}  // namespace phalanx
