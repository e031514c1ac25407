// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/testing/fuzz/program.h"
#include "framework/testing/fuzz/schedule.h"

namespace phalanx::testing {

/// How a schedule went.
struct Outcome {
  std::vector<std::string> faults;  // none if all is well
  std::uint64_t trace = 0;          // the same whenever this seed is run
  std::uint64_t points = 0;         // schedule points
  int killed = -1;                  // the rank; -1: none
  int finished = 0;                 // ranks that came to the end of their program
};

/// Who is killed under this seed, and when: nobody in half of them.
std::optional<Kill> draw_kill(const Program& program);

/// Plays the program of `seed` on ranks of the inproc backend, under the schedule of `seed`, in threads that it starts
/// and joins. A hang is reported on stderr, with the seed and what each rank was at, and aborts the process. One at a
/// time.
Outcome run_schedule(std::uint64_t seed);

}  // namespace phalanx::testing
