// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "engine/experiment/config.h"
#include "engine/task/task.h"
#include "framework/comm/mesh.h"
#include "models/model.h"

namespace phalanx {

/// The parameters of a replica that are divided between its ranks.
struct DividedModel {
  Placements placements;          // of all divided parameters
  std::set<std::string> experts;  // the parameters of experts among them

  /// Returns true if all ranks of the tensor axis have the whole parameter.
  bool same_along_tensor(const std::string& parameter) const {
    return is_expert(parameter) || !placements.contains(parameter);
  }

  bool is_expert(const std::string& parameter) const { return experts.contains(parameter); }
};

/// Divides a whole model along the axes tensor, expert and context of the mesh, in place. Its layers follow the
/// config's plan, or the model's plan if the config has none. A plan of the config is tested with one sample.
/// Collective. Throws ConfigError if the model cannot be divided this way.
DividedModel divide_model(const ExperimentConfig& config, const Task& task, const Mesh& mesh, Model& model);

}  // namespace phalanx
