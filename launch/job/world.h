#pragma once

#include <string>
#include <vector>

#include "engine/experiment/config.h"
#include "framework/collectives/selection/selecting_communicator.h"
#include "framework/comm/launch_environment.h"
#include "framework/comm/store.h"

namespace phalanx {

/// The backends that rules of `framework.selection` name, other than the config's own.
std::vector<std::string> selected_backends(const ExperimentConfig& config);

/// A communicator of all ranks for each backend that the config asks for: its own first, then those of
/// selected_backends(). Collective. Errors as connect()'s. `met`: as in connect_all().
using Connections = std::vector<SelectingCommunicator::Alternative>;
Connections connect_backends(const ExperimentConfig& config, const LaunchEnvironment& launched, StorePtr met = nullptr);

/// The same for a rank that is a thread of this process, the backend of which is inproc; `store` is that of all ranks.
Connections connect_thread(const ExperimentConfig& config, const RankInfo& rank_info, const StorePtr& store);

/// The world that training gets: operations are done as `framework.selection` and `framework.selection_file` say, and
/// compared before where `framework.check_collectives` asks for it. Collective, with the same config on all ranks.
/// Throws ConfigError, on all ranks alike, for a selection file that was measured elsewhere, or that ranks have in
/// different versions.
CommunicatorPtr decorate(Connections connections, const ExperimentConfig& config);

}  // namespace phalanx
