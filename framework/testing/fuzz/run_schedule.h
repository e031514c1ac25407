// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/testing/fuzz/program.h"
#include "framework/testing/fuzz/schedule.h"

namespace phalanx::testing {

/// The outcome of a schedule.
struct Outcome {
  std::vector<std::string> faults;  // empty if there were no errors
  std::uint64_t trace = 0;          // identical for every run of the same seed
  std::uint64_t points = 0;         // schedule points
  int killed = -1;                  // rank that was killed; -1: none
  int finished = 0;                 // ranks that reached the end of their program
};

/// Returns which rank this seed kills, and when. Half of the seeds kill none.
std::optional<Kill> draw_kill(const Program& program);

/// Runs the program of `seed` under the schedule of `seed`, on ranks that are threads, which it starts and joins. The
/// seed also decides whether they reach all memory of each other, as those of backend inproc do, or only what processes
/// of backend shm reach. If the ranks hang, it reports the seed and the step of each rank on stderr and aborts the
/// process. Must not run more than once at the same time.
Outcome run_schedule(std::uint64_t seed);

}  // namespace phalanx::testing
