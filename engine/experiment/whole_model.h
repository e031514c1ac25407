// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/experiment/divided_model.h"
#include "engine/experiment/pipeline.h"
#include "framework/base/storage/safetensors.h"
#include "framework/comm/mesh.h"
#include "models/model.h"

namespace phalanx {

/// The whole model, of which each rank has a part: layers are divided along the axes tensor and expert of a mesh, and
/// blocks are divided between the stages of a pipeline.
class WholeModel {
 public:
  /// `pipeline` is null if all ranks have all blocks. All arguments must outlive the object.
  WholeModel(const Mesh& mesh, const Model& part, const DividedModel& divided, const Pipeline* pipeline)
      : mesh_(mesh), part_(part), divided_(divided), pipeline_(pipeline) {}

  std::int64_t parameter_count() const;

  /// Returns the names of parameters and buffers that this rank does not have, or that other ranks of the replica
  /// update. `updates` returns true if this rank updates a parameter that it has.
  std::set<std::string> elsewhere(const std::function<bool(const std::string& parameter)>& updates) const;

  /// Returns all parameters and buffers on rank 0, and nothing on other ranks or unless `wanted`. Tensors that are not
  /// divided share the model's memory. Collective.
  NamedTensors gather(bool wanted) const;

 private:
  std::vector<Pipeline::Whole> parameters() const;
  at::Tensor gathered(const Pipeline::Whole& tensor, const CommunicatorPtr& parts) const;

  const Mesh& mesh_;
  const Model& part_;
  const DividedModel& divided_;
  const Pipeline* pipeline_;
};

}  // namespace phalanx
