// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <functional>
#include <utility>

namespace phalanx {

/// torch::nn::Dropout (Srivastava et al. 2014), whose numbers belong to the rows of the global batch (RandomRows): a
/// run leaves out the same on any mesh, with ranks or replicas in threads, in any number of parts, and after a
/// checkpoint. Input [n, ...], whole on each rank, or divided by positions. Outside of a training step, where a batch
/// has no place, it draws from LibTorch's generator.
class DropoutImpl : public torch::nn::Module {
 public:
  explicit DropoutImpl(double rate) : rate_(rate) {}  // 0 <= rate < 1: of what is left out

  at::Tensor forward(const at::Tensor& input) const;

  /// Inputs [n, positions, ...] are one of `parts` equally many positions, which `take` takes of a tensor with all.
  using TakePositions = std::function<at::Tensor(const at::Tensor& all)>;
  void divide_positions(std::int64_t parts, TakePositions take) {
    parts_ = parts;
    take_ = std::move(take);
  }

  /// Which of a model's layers it is; a Network tells its own, by their names.
  void set_layer(std::uint64_t number) { layer_ = number; }

 private:
  double rate_;
  std::uint64_t layer_ = 0;
  std::int64_t parts_ = 1;
  TakePositions take_;
};
TORCH_MODULE(Dropout);

}  // namespace phalanx
