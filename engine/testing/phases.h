// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/build/make_model.h"
#include "engine/build/partition.h"
#include "engine/config/experiment_config.h"
#include "engine/task/task.h"
#include "framework/base/config/config.h"
#include "framework/base/error.h"
#include "framework/base/sample_spec.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/testing/worlds.h"

// The inputs of the phases of a replica, for tests that call one phase alone.
namespace phalanx::testing {

/// A config, and its task for some samples.
struct ConfiguredTask {
  ExperimentConfig config;
  std::unique_ptr<Task> task;

  Mesh mesh(const CommunicatorPtr& world) const { return Mesh(world, mesh_shape(config.mesh, world->size())); }

  /// Returns the whole model with which a run of the config starts.
  std::shared_ptr<Model> initial_model() const { return make_initial_model(config, task->model(), false); }

  /// Returns this rank's part of it, for steps of `batch` samples. Collective.
  PartitionedModel part(const Mesh& mesh) const { return part(mesh, config.train.global_batch_size); }
  PartitionedModel part(const Mesh& mesh, std::int64_t batch) const {
    return partition(config, *task, mesh, initial_model(), batch);
  }
};

/// Returns the config of a perceptron of 4 inputs and 3 outputs with these changes ("mesh.tensor=2").
inline ConfiguredTask configured(const std::vector<std::string>& changes,
                                 const SampleSpec& samples = classification_samples({4}, 3)) {
  ConfiguredTask result;
  config::load_text(result.config, "{model: {name: mlp, hidden: [8]}, strategy: all_reduce}", "test.yaml", changes);
  result.task = result.config.task.make(samples, result.config.loss.make());
  return result;
}

/// Returns the text of the ConfigError that `body` throws; empty if it throws none.
inline std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace phalanx::testing
