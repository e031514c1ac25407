// SPDX-License-Identifier: Apache-2.0
#include "engine/build/partition.h"

#include <ATen/core/grad_mode.h>

#include <exception>
#include <utility>

#include "engine/build/training_step.h"
#include "engine/build/zero_inputs.h"
#include "engine/step/computation.h"
#include "framework/base/error.h"
#include "framework/parallel/autocast.h"
#include "models/context_parallel.h"
#include "models/expert_parallel.h"
#include "models/sequence_parallel.h"
#include "models/tensor_parallel.h"
#include "models/weights_layout.h"

namespace phalanx {
namespace {

TensorPlan plan_of(const ExperimentConfig& config, const Model& model) {
  TensorPlan plan;
  for (const auto& entry : config.plan) {
    if (!plan.emplace(entry.layers, entry.style).second) {
      throw ConfigError("plan: has \"" + entry.layers + "\" twice");
    }
  }
  const auto* const tensor_parallel = as<TensorParallel>(model);
  if (tensor_parallel == nullptr && !plan.empty()) {
    throw ConfigError("plan: \"" + plan.begin()->first + "\": the layers of model " + config.model.selected() +
                      " cannot be divided");
  }
  if (tensor_parallel != nullptr && plan.empty()) plan = tensor_parallel->tensor_plan();
  if (!plan.empty()) return plan;
  throw ConfigError(
      "mesh.tensor: model " + config.model.selected() +
      " has no plan of its own by which its layers could be divided; set plan, or leave mesh.tensor at 1");
}

void enable_sequence_parallel(const ExperimentConfig& config, const ModelSpec& spec, const Mesh& mesh, Model& model) {
  auto* const sequence_parallel = as<SequenceParallel>(model);
  if (sequence_parallel == nullptr) {
    throw ConfigError("mesh.sequence_parallel: model " + config.model.selected() +
                      " has no positions that ranks could divide between its layers; use one that has (" +
                      models_with(&ModelTraits::sequence_parallel) + "), or remove it");
  }
  sequence_parallel->enable_sequence_parallel(mesh.along(Axis::kTensor), config.mesh.async_tensor);
  const auto& sizes = config.mesh;
  const auto length = spec.inputs.front().shape.front(), parts = sizes.tensor * sizes.context;
  if (length % parts == 0) return;
  throw ConfigError("mesh.sequence_parallel: samples have " + std::to_string(length) +
                    " positions, which mesh.tensor: " + std::to_string(sizes.tensor) +
                    (sizes.context > 1 ? " times mesh.context: " + std::to_string(sizes.context) : "") +
                    " ranks cannot divide equally; use samples of " + std::to_string((length / parts + 1) * parts) +
                    " positions, or remove it");
}

// Refuses steps that compute a rank's samples in several parts, one after the other or in threads.
void refuse_parts_of_batches(const ExperimentConfig& config, const ExpertParallel& model) {
  const std::string counted = model.counts_over_batch();
  if (counted.empty()) return;
  const auto& train = config.train;
  std::string key;
  if (config.determinism != "run") key = "determinism: " + config.determinism;
  if (train.accumulate > 1) key = "train.accumulate: " + std::to_string(train.accumulate);
  if (train.data_parallel > 1) key = "train.data_parallel: " + std::to_string(train.data_parallel);
  if (!key.empty()) throw ConfigError(key + " " + refusal_of_parts(config.model.selected(), counted));
}

Placements partition_experts(const ExperimentConfig& config, const Mesh& mesh, Model& model) {
  if (auto* const expert_parallel = as<ExpertParallel>(model)) {
    refuse_parts_of_batches(config, *expert_parallel);
    return expert_parallel->partition_experts(mesh.along(Axis::kExpert), mesh.batch());
  }
  if (config.mesh.expert == 1) return {};
  throw ConfigError("mesh.expert: model " + config.model.selected() + " has no experts; use one that has (" +
                    models_with(&ModelTraits::expert_parallel) + "), or leave mesh.expert at 1");
}

void enable_context_parallel(const ExperimentConfig& config, const Mesh& mesh, Model& model) {
  if (config.mesh.context == 1) return;
  auto* const context_parallel = as<ContextParallel>(model);
  if (context_parallel == nullptr) {
    throw ConfigError("mesh.context: model " + config.model.selected() +
                      " cannot compute a part of a sequence; use one that can (" +
                      models_with(&ModelTraits::context_parallel) + "), or leave mesh.context at 1");
  }
  try {
    context_parallel->enable_context_parallel(mesh.along(Axis::kContext));
  } catch (const ConfigError& error) {
    throw ConfigError("mesh.context: model " + config.model.selected() + ": " + error.what());
  }
}

// Runs the partitioned model once: a layer that gets an input of the wrong shape throws.
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

PartitionedModel partition(const ExperimentConfig& config, const Task& task, const Mesh& mesh,
                           std::shared_ptr<Model> model, std::int64_t batch) {
  PartitionedModel part{.mesh = mesh, .model = std::move(model)};
  Model& whole = *part.model;
  const auto& tensor = mesh.along(Axis::kTensor);
  if (tensor->size() > 1) {
    const TensorPlan plan = plan_of(config, whole);  // throws if the model is not TensorParallel
    part.placements = as<TensorParallel>(whole)->partition_layers(plan, tensor);
  }
  if (config.mesh.sequence_parallel) enable_sequence_parallel(config, task.model(), mesh, whole);
  Placements experts = partition_experts(config, mesh, whole);
  for (const auto& [name, placement] : experts) part.experts.insert(name);
  part.placements.merge(experts);
  enable_context_parallel(config, mesh, whole);
  try_plan(config, task, mesh, whole);
  if (config.mesh.pipe > 1) {
    part.pipeline.emplace(config, whole, task, mesh, arithmetic_of(config.train, task.model()), batch);
  }
  return part;
}

void place(PartitionedModel& part, c10::Device device) {
  if (!device.is_cpu()) move_weights(*part.model, device);
  part.device = device;
}

}  // namespace phalanx
