// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/hooks.h"
#include "tools/chaos/fault.h"

namespace phalanx::chaos {

/// The facts about a run that decide which faults it can have, and when.
struct Subject {
  int ranks = 1;
  bool threads = false;               // ranks are threads of one process
  bool replaces = false;              // processes take the places of lost ranks (faults.on_lost_rank: replace)
  std::int64_t steps = 0;             // of the whole run
  std::int64_t checkpoint_every = 0;  // steps between checkpoints, above 0
  std::int64_t keep_last = 3;         // checkpoints that are kept
  std::string no_mounts{};            // why this process cannot mount file systems; empty: it can
  std::string no_hosts{};             // why ranks cannot run on two virtual hosts; empty: they can
};

/// Returns why a run cannot have a fault, or an empty string.
std::string why_skipped(const Fault& fault, const Subject& subject);

/// One run with a fault, as drawn.
struct Trial {
  int number = 0;          // from 1
  std::uint64_t seed = 0;  // for what else is random about it
  const Fault* fault = nullptr;
  int rank = 0;
  std::int64_t step = 0;         // from 1
  Event event = Event::kUpdate;  // of the step
  std::string newcomer{};        // where the first newcomer is killed (newcomer_points()); empty: it is not

  /// Returns the number of steps that are complete when the fault happens, or is found if a check has to find it.
  std::int64_t complete_steps() const;
};

/// Returns the first step at whose end the ranks of a run of so many steps wait for newcomers, so that these take part
/// in the steps that are left.
std::int64_t step_of_return(std::int64_t steps);

/// Draws runs from a seed. The same seed and subject give the same runs. Each of `all` occurs once before any occurs
/// again, so that few runs have many faults. `all` must not be empty.
std::vector<Trial> draw(const std::vector<const Fault*>& all, int runs, std::uint64_t seed, const Subject& subject);

}  // namespace phalanx::chaos
