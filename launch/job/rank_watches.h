// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "engine/config/experiment_config.h"
#include "framework/comm/communicator.h"
#include "launch/job/rank_presence.h"
#include "launch/job/started_rank.h"
#include "launch/stall/loader_deadline.h"
#include "launch/stall/stall_watch.h"

// The threads that look after the thread of a rank, as its config asks. What they get must outlive them.
namespace phalanx {

/// Watches for ranks for which others wait (framework.warn_after). Returns null if there is nothing to watch.
/// `sentence` gets the explanation of the wait that ends the run; nobody may read it while the watch exists.
std::unique_ptr<StallWatch> watch_for_stalls(const ExperimentConfig& config, const Communicator& world,
                                             const RunFolder& folder, const RankPresence& presence,
                                             std::string& sentence);

/// Ends this process if the loader of the rank gives no batch in time (loader.timeout). Returns null if it may take as
/// long as it wants. `supervised` is as in record_end().
std::unique_ptr<LoaderDeadline> limit_loader(const ExperimentConfig& config, const StartedRank& rank,
                                             const RankPresence& presence, bool supervised);

}  // namespace phalanx
