// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "engine/build/pipeline.h"
#include "engine/config/experiment_config.h"
#include "engine/task/task.h"
#include "framework/comm/mesh/mesh.h"
#include "framework/partition/placement.h"
#include "models/model.h"

namespace phalanx {

/// One rank's part of a replica of the model.
struct PartitionedModel {
  Mesh mesh;                           // the ranks among which the replicas and their parts are partitioned
  std::shared_ptr<Model> model;        // this rank's part; the whole model if the mesh does not divide it
  Placements placements{};             // of the parameters of which this rank has a part
  std::set<std::string> experts{};     // the parameters of experts among them
  std::optional<Pipeline> pipeline{};  // the pipeline in which the model is a stage; empty with mesh.pipe: 1
  c10::Device device{c10::kCPU};       // where the model is

  bool is_expert(const std::string& parameter) const { return experts.contains(parameter); }

  /// Returns true if all ranks of the tensor axis have the whole parameter.
  bool same_along_tensor(const std::string& parameter) const {
    return is_expert(parameter) || !placements.contains(parameter);
  }
};

/// Divides a whole model along the axes of the mesh, in place: layers along tensor, experts along expert, sequences
/// along context, and finally the blocks that are left along pipe. Layers follow the config's plan, or the model's plan
/// if the config has none. A plan of the config is tested with one sample. `batch`: the samples of a step over all
/// ranks, from which a pipeline chooses its micro-batches.
///
/// The model is on the CPU. Collective. Throws ConfigError, on all ranks, if the model cannot be partitioned this way.
PartitionedModel partition(const ExperimentConfig& config, const Task& task, const Mesh& mesh,
                           std::shared_ptr<Model> model, std::int64_t batch);

/// Moves this rank's part to a device. A model is made and partitioned on the CPU, because the device need not have
/// memory for the parts of other ranks.
void place(PartitionedModel& part, c10::Device device);

}  // namespace phalanx
