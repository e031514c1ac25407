// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "framework/base/named_tensors.h"
#include "models/model.h"

namespace phalanx {

/// A parameter or buffer of the whole model.
struct WholeTensor {
  std::string name;
  std::vector<std::int64_t> shape{};  // shape on the ranks that have the tensor
  c10::ScalarType dtype = c10::ScalarType::Float;
};

/// Returns the names, shapes and dtypes of tensors.
std::vector<WholeTensor> described(const NamedTensors& tensors);

/// The tensors of a model whose blocks are partitioned between the ranks of a pipeline, and the ranks that hold them.
class TensorHolders {
 public:
  TensorHolders() = default;

  /// `blocks`: the indices of the blocks that each rank will keep of `model`, a BlockChain that still has all of them.
  /// Throws Error if a tensor belongs to no block.
  TensorHolders(const Model& model, const std::vector<std::vector<std::size_t>>& blocks);

  const std::vector<WholeTensor>& parameters() const { return parameters_; }  // in the model's order
  const std::vector<WholeTensor>& buffers() const { return buffers_; }

  /// Returns the ranks of the pipeline that hold a tensor, in ascending order.
  const std::vector<int>& ranks(const std::string& tensor) const { return ranks_.at(tensor); }

 private:
  std::vector<WholeTensor> parameters_, buffers_;
  std::map<std::string, std::vector<int>> ranks_;
};

}  // namespace phalanx
