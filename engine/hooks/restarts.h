// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx {

/// The number of times that a job was started again after failures (launch.restarts), and the time that this has cost:
/// the time of steps that were lost because they came after the newest checkpoint, and the time until the ranks were
/// started again.
struct Restarts {
  std::int64_t count = 0;
  double lost_seconds = 0;
  std::vector<int> wrong_ranks{};  // ranks that have computed wrongly before, if the ranks still have the same numbers
};

/// Stores the restarts so far in the environment of this process, for ranks that it starts from now on. Must be called
/// while the process has one thread.
void set_restarts(const Restarts& restarts);

/// Returns the restarts of the job of this rank, zeros if its launcher has set none. Throws ConfigError if the variable
/// (PHALANX_RESTARTS) is malformed.
Restarts restarts_of_job();

}  // namespace phalanx
