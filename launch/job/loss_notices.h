// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/checkpoint/carried_state.h"
#include "framework/comm/mesh/broken_replicas.h"

// With these functions, the ranks that are left after a loss agree on who is gone and why, and tell the person and the
// launcher.
namespace phalanx {

/// The ranks that do not take part any more, by their numbers in the job.
struct Departures {
  std::vector<int> lost{};
  std::vector<Stranded> stranded{};  // ranks that have to leave, since their replica has lost a rank
};

/// Returns why a rank has to leave: the end of a sentence.
std::string reason_to_leave(const Stranded& rank);

/// Prints a line for each of these ranks that nobody has told of yet, and leaves a note for the launcher in
/// `log_folder`. Called by the first rank that is left: `left` ranks go on, of `everyone` that have ever taken part,
/// and `before` are the losses that this rank knows. Waits up to 2 s for the reason of each loss. Returns a text for
/// add_losses().
std::string tell_of_losses(const Departures& departures, int left, std::size_t everyone,
                           const std::vector<LostRank>& before, const std::string& log_folder);

/// Adds the losses of which the first rank has told to those that this rank knows.
void add_losses(const std::string& told, std::vector<LostRank>& losses);

}  // namespace phalanx
