// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/experiment/config.h"
#include "framework/collectives/selection/selecting_communicator.h"
#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx {

/// The backends named by rules of `framework.selection`, other than the config's own.
std::vector<std::string> selected_backends(const ExperimentConfig& config);

/// A communicator of all ranks for each backend that the config uses: its own first, then those of selected_backends().
/// Collective. Throws what connect() throws. `met`: as in connect_all().
using Connections = std::vector<SelectingCommunicator::Alternative>;
Connections connect_backends(const ExperimentConfig& config, const LaunchEnvironment& launched, StorePtr met = nullptr);

/// The same for a rank that is a thread of this process, with backend inproc; `store` is shared by all ranks.
Connections connect_thread(const ExperimentConfig& config, const RankInfo& rank_info, const StorePtr& store);

/// The communicator for training: operations follow `framework.selection` and `framework.selection_file`, and are
/// compared beforehand if `framework.check_collectives` is set. Collective, with the same config on all ranks. Throws
/// ConfigError, on all ranks alike, for a selection file that was measured elsewhere or differs between ranks.
CommunicatorPtr decorate(Connections connections, const ExperimentConfig& config);

}  // namespace phalanx
