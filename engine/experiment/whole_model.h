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

/// The whole model, of which each rank has a part: layers cut by a mesh's axes tensor and expert, and the blocks of a
/// stage.
class WholeModel {
 public:
  /// `pipeline`: null where all ranks have all blocks. All must outlive it.
  WholeModel(const Mesh& mesh, const Model& part, const DividedModel& divided, const Pipeline* pipeline)
      : mesh_(mesh), part_(part), divided_(divided), pipeline_(pipeline) {}

  std::int64_t parameter_count() const;

  /// Parameters and buffers that only other ranks of the replica have, or update; `updates`: whether this one does,
  /// where it has a parameter.
  std::set<std::string> elsewhere(const std::function<bool(const std::string& parameter)>& updates) const;

  /// Parameters and buffers, on rank 0; elsewhere, and unless `wanted`, none. Those that are not divided are the
  /// model's own tensors. Collective.
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
