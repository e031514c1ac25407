// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

#include "engine/experiment/config.h"
#include "engine/task/task.h"
#include "framework/comm/mesh.h"
#include "models/model.h"

namespace phalanx {

/// Which parameters of a replica its ranks have parts of.
struct DividedModel {
  Placements placements;          // of all that are divided
  std::set<std::string> experts;  // of these, the parameters of experts

  /// Returns true if all ranks of the tensor axis have the whole parameter.
  bool same_along_tensor(const std::string& parameter) const {
    return is_expert(parameter) || !placements.contains(parameter);
  }

  bool is_expert(const std::string& parameter) const { return experts.contains(parameter); }
};

/// Divides a whole model along the axes tensor, expert and context of the mesh, in place: its layers by the config's
/// plan, or else by the model's own. A plan of the config is tried with a sample. Collective. Throws ConfigError for a
/// model that cannot be divided so.
DividedModel divide_model(const ExperimentConfig& config, const Task& task, const Mesh& mesh, Model& model);

}  // namespace phalanx
