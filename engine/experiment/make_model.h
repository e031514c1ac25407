// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/experiment/config.h"
#include "models/model.h"

namespace phalanx {

/// The model that the config names for what the task asks of it, whole and on the CPU, with the initial values of the
/// config's seed: the same on all ranks. Throws ConfigError.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const ModelSpec& spec);

/// The same as a run begins with it: with the weights of init.from, unless the run goes on from a checkpoint that its
/// config names. `speaks`: says which they are. Throws ConfigError.
std::shared_ptr<Model> make_initial_model(const ExperimentConfig& config, const ModelSpec& spec, bool speaks);

/// The model for another thread of the process, with the frozen parameters of `first`. What is trained is its own.
std::shared_ptr<Model> make_other_model(const ExperimentConfig& config, const ModelSpec& spec, const Model& first);

}  // namespace phalanx
