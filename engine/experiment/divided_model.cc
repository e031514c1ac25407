// SPDX-License-Identifier: Apache-2.0
#include "engine/experiment/divided_model.h"

#include <ATen/core/grad_mode.h>

#include <exception>
#include <utility>

#include "engine/experiment/training_step.h"
#include "engine/experiment/zero_inputs.h"
#include "engine/step/computation.h"
#include "framework/base/error.h"
#include "framework/parallel/autocast.h"
#include "models/has_experts.h"

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

// Refuses steps that compute a rank's samples in several parts, one after the other or in threads.
void refuse_parts_of_batches(const ExperimentConfig& config, const Model& model) {
  const std::string counted = counts_over_batch(model);
  if (counted.empty()) return;
  const auto& train = config.train;
  std::string key;
  if (config.determinism != "run") key = "determinism: " + config.determinism;
  if (train.accumulate > 1) key = "train.accumulate: " + std::to_string(train.accumulate);
  if (train.data_parallel > 1) key = "train.data_parallel: " + std::to_string(train.data_parallel);
  if (!key.empty()) throw ConfigError(key + " " + refusal_of_parts(config.model.selected(), counted));
}

Placements divide_experts(const ExperimentConfig& config, const Mesh& mesh, Model& model) {
  refuse_parts_of_batches(config, model);
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

// Runs the divided model once: a layer that gets an input of the wrong shape throws.
void try_plan(const ExperimentConfig& config, const Task& task, const Mesh& mesh, Model& model) {
  if (config.plan.empty()) return;
  const at::NoGradGuard no_grad;
  const Computation computation(task, arithmetic_of(config.train, task.model()), nullptr, nullptr);
  const auto inputs = computation.inputs({.inputs = zero_inputs(task, mesh), .valid = 1, .global_rows = 1});
  const Autocast autocast(inputs.at(0).device().type(), computation.autocast());
  model.eval();
  try {
    model.outputs(inputs);
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    const std::string why = error.what();
    throw ConfigError(
        "plan: the model cannot be computed with its layers divided in this way: " + why.substr(0, why.find('\n')) +
        ". The output of a layer of style column is divided, as a layer of style row needs its input");
  }
}

}  // namespace

DividedModel divide_model(const ExperimentConfig& config, const Task& task, const Mesh& mesh, Model& model) {
  DividedModel divided;
  const auto& tensor = mesh.along(Axis::kTensor);
  if (tensor->size() > 1) divided.placements = model.divide(plan_of(config, model), tensor);
  if (config.mesh.sequence_parallel) share_positions(config, task.model(), mesh, model);
  Placements experts = divide_experts(config, mesh, model);
  for (const auto& [name, placement] : experts) divided.experts.insert(name);
  divided.placements.merge(experts);
  divide_sequence(config, mesh, model);
  try_plan(config, task, mesh, model);
  return divided;
}

}  // namespace phalanx
