#include "engine/experiment/divided_model.h"

#include <utility>

#include "framework/base/error.h"

namespace phalanx {
namespace {

TensorPlan plan_of(const ExperimentConfig& config, const Model& model) {
  TensorPlan plan;
  for (const auto& entry : config.plan) {
    if (!plan.emplace(entry.layers, entry.style).second) {
      throw ConfigError("plan: has \"" + entry.layers + "\" twice");
    }
  }
  if (plan.empty()) plan = model.tensor_plan();
  if (!plan.empty()) return plan;
  throw ConfigError(
      "mesh.tensor: model " + config.model.selected() +
      " has no plan of its own by which its layers could be divided; set plan, or leave mesh.tensor at 1");
}

void share_positions(const ExperimentConfig& config, const ModelSpec& spec, const Mesh& mesh, Model& model) {
  if (!model.share_positions(mesh.along(Axis::kTensor))) {
    throw ConfigError("mesh.sequence_parallel: model " + config.model.selected() +
                      " has no positions that ranks could divide between its layers; use one that has, such as gpt, or "
                      "leave it out");
  }
  if (config.mesh.async_tensor) model.overlap_exchange();
  const auto& sizes = config.mesh;
  const auto length = spec.inputs.front().shape.front(), parts = sizes.tensor * sizes.context;
  if (length % parts == 0) return;
  throw ConfigError("mesh.sequence_parallel: samples have " + std::to_string(length) +
                    " positions, which mesh.tensor: " + std::to_string(sizes.tensor) +
                    (sizes.context > 1 ? " times mesh.context: " + std::to_string(sizes.context) : "") +
                    " ranks cannot divide equally; use samples of " + std::to_string((length / parts + 1) * parts) +
                    " positions, or leave it out");
}

Placements divide_experts(const ExperimentConfig& config, const Mesh& mesh, Model& model) {
  Placements experts = model.divide_experts(mesh.along(Axis::kExpert), mesh.batch());
  if (!experts.empty() || config.mesh.expert == 1) return experts;
  throw ConfigError("mesh.expert: model " + config.model.selected() +
                    " has no experts; use one that has, such as moe_gpt, or leave mesh.expert at 1");
}

void divide_sequence(const ExperimentConfig& config, const Mesh& mesh, Model& model) {
  if (config.mesh.context == 1) return;
  try {
    if (model.divide_sequence(mesh.along(Axis::kContext))) return;
  } catch (const ConfigError& error) {
    throw ConfigError("mesh.context: model " + config.model.selected() + ": " + error.what());
  }
  throw ConfigError("mesh.context: model " + config.model.selected() +
                    " cannot compute a part of a sequence; use one that can, such as gpt, or leave mesh.context at 1");
}

}  // namespace

DividedModel divide_model(const ExperimentConfig& config, const ModelSpec& spec, const Mesh& mesh, Model& model) {
  DividedModel divided;
  const auto& tensor = mesh.along(Axis::kTensor);
  if (tensor->size() > 1) divided.placements = model.divide(plan_of(config, model), tensor);
  if (config.mesh.sequence_parallel) share_positions(config, spec, mesh, model);
  Placements experts = divide_experts(config, mesh, model);
  for (const auto& [name, placement] : experts) divided.experts.insert(name);
  divided.placements.merge(experts);
  divide_sequence(config, mesh, model);
  return divided;
}

}  // namespace phalanx
