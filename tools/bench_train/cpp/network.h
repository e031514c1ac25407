// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace phalanx::bench_train {

/// A model as people write it with LibTorch.
class Network : public torch::nn::Module {
 public:
  /// Returns the scores of all classes: [rows, classes], or [rows, characters, classes] for text.
  virtual at::Tensor forward(const at::Tensor& x) = 0;
};

/// Returns "mlp", "lenet" or "char_lm" with the layers and parameters of ddp_models.py. `input` is the shape of a
/// sample. Draws the initial values from LibTorch's generator. Throws std::invalid_argument for other names.
std::shared_ptr<Network> make_network(const std::string& name, const std::vector<std::int64_t>& input,
                                      std::int64_t classes);

}  // namespace phalanx::bench_train
