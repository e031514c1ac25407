// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/config/experiment_config.h"
#include "framework/collectives/selection/selecting_communicator.h"
#include "framework/collectives/tuning/tuner.h"
#include "framework/comm/launch/launch_environment.h"
#include "framework/comm/store/rendezvous.h"

namespace phalanx {

/// Returns the backends named by rules of `framework.selection`, other than the config's own.
std::vector<std::string> selected_backends(const ExperimentConfig& config);

/// Returns a communicator of all ranks for each backend that the config uses: its own first, followed by
/// selected_backends(). `met`, `numbers` and `check` are as in ConnectSettings. Collective. Throws what connect()
/// throws.
using Connections = std::vector<SelectingCommunicator::Alternative>;
Connections connect_backends(const ExperimentConfig& config, const LaunchEnvironment& launched,
                             std::optional<Rendezvous> met = {}, std::vector<int> numbers = {},
                             std::function<void()> check = {});

/// Does the same for a rank that is a thread of this process, with backend inproc. All ranks share `store`.
Connections connect_thread(const ExperimentConfig& config, const RankInfo& rank_info, const StorePtr& store);

/// The communicator for training, and what chooses its algorithms by measurement.
struct DecoratedWorld {
  CommunicatorPtr world;
  std::shared_ptr<Tuner> tuner{};  // null unless framework.tune is auto
};

/// Decorates the first of the connections. Messages have checksums if `framework.checksums` is set. Its collectives
/// work by `framework.topology.levels`. Its operations follow `framework.selection`, `framework.selection_file` and
/// `framework.tune`, and are compared beforehand if `framework.check_collectives` is set. `tuned_file` is the file of
/// this run for measured rules; may be empty. Collective, with the same config on all ranks. Throws ConfigError on all
/// ranks if a selection file was measured on another system or differs between ranks.
DecoratedWorld decorate(Connections connections, const ExperimentConfig& config, const std::string& tuned_file);

}  // namespace phalanx
