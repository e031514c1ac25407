// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/experiment/config.h"
#include "models/model.h"

namespace phalanx {

/// Returns the config's model for the inputs and outputs of `spec`. It is whole, on the CPU, and has the initial values
/// of the config's seed, which are the same on all ranks. Throws ConfigError.
std::shared_ptr<Model> make_model(const ExperimentConfig& config, const ModelSpec& spec);

/// Returns the model with which a run starts. It has the weights of init.from, unless the config names a checkpoint to
/// resume from. If `verbose`, reports the weights. Throws ConfigError.
std::shared_ptr<Model> make_initial_model(const ExperimentConfig& config, const ModelSpec& spec, bool verbose);

/// Returns a model for another thread of the process. It shares the frozen parameters of `first` and has separate
/// trained parameters.
std::shared_ptr<Model> make_other_model(const ExperimentConfig& config, const ModelSpec& spec, const Model& first);

}  // namespace phalanx
