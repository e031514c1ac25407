// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/carried_state.h"
#include "engine/config/experiment_config.h"
#include "framework/comm/launch/launch_environment.h"
#include "launch/job/world.h"
#include "launch/local/meeting_folder.h"

namespace phalanx {

/// Connects the ranks of an attempt, of which this process is rank `rank`, in a new world, on however many hosts they
/// are. All ranks of the attempt call this; the end of any of them ends the attempt.
///
/// Waits up to 10 s until all of them have come and connected. Returns nothing, on all ranks, if they do not come, end,
/// or do not connect, or if the meeting folder cannot be used; the log says why. If a rank cannot write to the folder,
/// the attempt is postponed. Throws CommError if the others use the new world, but this rank has not connected, and
/// Error if it cannot know: the folder has disappeared while all connected. The others then lose it.
std::optional<Connections> connect_with_newcomers(const MeetingFolder& meeting, const Attempt& attempt, int rank,
                                                  const ExperimentConfig& config, const LaunchEnvironment& launched);

/// The history of a job that newcomers get from the first rank.
struct History {
  std::vector<int> everyone{};  // the numbers of all ranks that have ever taken part, ascending
  std::vector<LostRank> lost{};
  std::vector<ReturnedRank> returned{};
  double lost_seconds = 0;
};

/// The second function throws DataError if the text is not what the first one returns.
std::string to_text(const History& history);
History parse_history(const std::string& text);

}  // namespace phalanx
