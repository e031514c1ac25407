// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "datasets/dataset.h"
#include "engine/checkpoint/carried_state.h"
#include "engine/config/experiment_config.h"
#include "launch/job/end_command.h"
#include "launch/job/job.h"
#include "launch/job/rank_presence.h"
#include "launch/job/role.h"
#include "launch/job/started_rank.h"
#include "launch/job/world.h"

namespace phalanx {

/// A rank of a job, with what it keeps when its world changes. Belongs to the thread of the rank.
struct RankRun {
  const Job& job;
  const StartedRank& rank;                   // with a folder
  const bool supervised;                     // by a launcher of ours
  bool same_processors;                      // the processors of all ranks are of one kind
  std::optional<EndCommand>& command;        // runs at the end of a run that has not failed
  std::string& hang;                         // the explanation of the wait that ends the run
  std::unique_ptr<RankPresence> presence{};  // in the world
  std::optional<Splits> splits{};            // absent: not loaded yet
  KeptRole role{};                           // if the job goes on without lost ranks
  bool wrong_before = false;                 // this rank has computed wrongly
  std::shared_ptr<Recovery> recovery{};      // null: a lost rank ends the job
  std::function<bool()> newcomers_wait = [] { return false; };
};

/// Runs a rank in one world of a job: from the connections of the ranks that there are to the end of the training, of
/// its service as a parameter server, or of the job's own body. `config` is the one of the job, for these ranks.
/// Collective. Returns the exit status of the rank. Throws whatever ends the rank or this world: with
/// RankRun::recovery, a CommError of kind kPeerLost or NewcomersWait leaves there what the rank can go on with in
/// another world, and nothing uses the connections any more.
int run_in_world(RankRun& run, Connections connections, const ExperimentConfig& config);

}  // namespace phalanx
