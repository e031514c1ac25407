// SPDX-License-Identifier: Apache-2.0
#include "engine/build/zero_inputs.h"

#include <ATen/ops/zeros.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "framework/partition/sequence_shard.h"

namespace phalanx {

Tensors zero_inputs(const Task& task, const Mesh& mesh) {
  const auto& context = mesh.along(Axis::kContext);
  Tensors inputs;
  for (const auto& input : task.model().inputs) {
    std::vector<std::int64_t> shape{1};
    shape.insert(shape.end(), input.shape.begin(), input.shape.end());
    at::Tensor zeros = at::zeros(shape, at::TensorOptions().dtype(input.dtype));
    if (context->size() > 1) zeros = shard_sequence(zeros, 1, *context);
    inputs.push_back(std::move(zeros));
  }
  return inputs;
}

}  // namespace phalanx
