// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/config/experiment_config.h"
#include "engine/engine.h"
#include "engine/run_folder.h"
#include "framework/collectives/recording/recorder.h"
#include "framework/collectives/recording/replay.h"
#include "framework/comm/launch/launch_environment.h"

namespace phalanx {

/// Starts the recording of this rank as section framework of the config asks, and replaces `world` by a communicator
/// that records. Returns null, and changes nothing, if the rank does not record. If framework.record is set, ranks that
/// do not record get a world that claims not to share memory, and not to take tensors of devices, like those that do,
/// so that all ranks choose the same strategy and the same way for the tensors of devices. Throws ConfigError, on all
/// ranks alike, if framework.record_ranks names a rank that does not exist.
std::shared_ptr<recording::Recorder> start_recording(const ExperimentConfig& config, const RankInfo& rank_info,
                                                     const std::string& backend, const RunFolder& folder,
                                                     CommunicatorPtr& world);

/// The state of a rank at the end of training. The hooks below fill it.
struct EndOfTraining {
  std::int64_t step = 0;
  std::uint64_t parameters = 0;  // checksum of the parameters that the rank updates
};

/// Adds the hooks by which a recorder learns of steps and of parameters.
std::shared_ptr<const EndOfTraining> attach(const std::shared_ptr<recording::Recorder>& recorder, Engine& engine);

/// Adds the hooks by which a replay follows the steps of a rank, and compares its parameters after each.
std::shared_ptr<const EndOfTraining> attach(const std::shared_ptr<recording::Replay>& replay, Engine& engine);

/// Returns a function for ExperimentContext::recorded_bytes: the bytes of all ranks together, which is collective, or
/// nothing if the config does not record. `own` returns the bytes of this rank.
std::function<std::optional<std::int64_t>()> recorded_bytes(const ExperimentConfig& config,
                                                            const CommunicatorPtr& world,
                                                            std::function<std::int64_t()> own);

/// Describes what determines the last bits of this process's results.
std::string describe_build();

}  // namespace phalanx
