// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/config/experiment_config.h"
#include "framework/base/error.h"

// The parts of check(). Each function adds the problems of some sections, among themselves and with other sections.
namespace phalanx {

/// Checks sections launch and roles: the number of ranks, how they are started, and what they do.
void check_ranks(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Checks section faults, and refuses what cannot go on without a lost rank.
void check_faults(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Checks sections mesh, pipeline and plan.
void check_mesh(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Refuses strategies that need shared memory with backends that move all data between ranks as messages. Ranks that a
/// launcher has started check this themselves.
void check_shared_memory(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Checks section strategy, except for what the next function checks.
void check_strategy(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Refuses settings that cannot be combined with sharded gradients or values, which are communicated block by block and
/// in each backward.
void check_shards(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Checks section train, except for what the next function checks.
void check_training(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Refuses operations that the replay of a recorded step omits: messages, and decisions of the host.
void check_cuda_graph(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Checks section loader.
void check_loader(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Refuses settings by which bits would depend on the number of ranks, and settings that need another reduction than
/// the one with `world_size_invariant`.
void check_determinism(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Refuses to record ranks that get data in other ways than by operations and from servers, and checks
/// framework.record_last.
void check_recording(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

/// Checks section expect. When a run starts, check_measured() checks that it measures the expected metrics.
void check_expectations(std::vector<ConfigProblem>& problems, const ExperimentConfig& config);

}  // namespace phalanx
