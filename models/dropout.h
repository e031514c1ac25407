// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "framework/parallel/random_rows.h"

namespace phalanx {

/// A torch::nn::Dropout (Srivastava et al. 2014) whose random numbers belong to the rows of the global batch
/// (RandomRows). So a run drops the same elements on any mesh, with ranks or with replicas in threads, in any number of
/// parts, and after resuming from a checkpoint. The input [n, ...] is whole on each rank or sharded by positions.
/// Outside of a training step, where rows have no position in a global batch, it uses LibTorch's generator.
class DropoutImpl : public torch::nn::Module {
 public:
  explicit DropoutImpl(double rate) : rate_(rate) {}  // 0 <= rate < 1: the probability of dropping an element

  at::Tensor forward(const at::Tensor& input) const;

  /// Returns true if forward() drops anything.
  bool drops() const { return is_training() && rate_ > 0; }

  /// Returns what forward() draws for an input [n, positions, ...] on `device`, for layers that compute the input in
  /// parts and draw the factors of each part (random_rows.h). Outside of a training step, it draws a key from
  /// LibTorch's generator of the device, and the factors are others than forward()'s. Positions must not be sharded by
  /// a function.
  DropoutNumbers numbers(std::int64_t positions, const c10::Device& device) const;

  /// From now on, inputs [n, positions, ...] have part `part` of `parts` equal, consecutive parts of the positions.
  void shard_positions(std::int64_t parts, std::int64_t part) {
    parts_ = parts;
    part_ = part;
  }

  /// The same for one of `parts` equal parts that need not be consecutive; `take` selects it from a tensor with all
  /// positions.
  using TakePositions = std::function<at::Tensor(const at::Tensor& all)>;
  void shard_positions(std::int64_t parts, TakePositions take) {
    parts_ = parts;
    take_ = std::move(take);
  }

  /// Sets the number of this layer, from which its random numbers derive. A Network sets it from the layer's name.
  void set_layer(std::uint64_t number) { layer_ = number; }

 private:
  double rate_;
  std::uint64_t layer_ = 0;
  std::int64_t parts_ = 1, part_ = 0;
  TakePositions take_;  // empty: the parts are consecutive
};
TORCH_MODULE(Dropout);

}  // namespace phalanx
