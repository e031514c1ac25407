#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

namespace phalanx {

/// torch::nn::Dropout (Srivastava et al. 2014), whose numbers belong to the rows of the global batch (RandomRows): a
/// run leaves out the same on any mesh, with ranks or replicas in threads, in any number of parts, and after a
/// checkpoint. Input [n, ...], whole on each rank. Outside of a training step, where a batch has no place, it draws
/// from LibTorch's generator.
class DropoutImpl : public torch::nn::Module {
 public:
  explicit DropoutImpl(double rate) : rate_(rate) {}  // 0 <= rate < 1: of what is left out

  at::Tensor forward(const at::Tensor& input) const;

  /// Which of a model's layers it is; a Network tells its own, by their names.
  void set_layer(std::uint64_t number) { layer_ = number; }

 private:
  double rate_;
  std::uint64_t layer_ = 0;
};
TORCH_MODULE(Dropout);

}  // namespace phalanx
