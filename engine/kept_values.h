// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

namespace phalanx {

/// Copies tensors, and writes the copies back in its destructor. Autograd does not see this as a modification:
/// gradients that depend on a tensor saved before can still be computed.
class RestoreTensorsGuard {
 public:
  explicit RestoreTensorsGuard(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {
    for (const auto& tensor : tensors_) before_.push_back(tensor.clone());
  }
  ~RestoreTensorsGuard() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < tensors_.size(); ++i) tensors_[i].variable_data().copy_(before_[i]);
  }
  RestoreTensorsGuard(const RestoreTensorsGuard&) = delete;
  RestoreTensorsGuard& operator=(const RestoreTensorsGuard&) = delete;

 private:
  std::vector<at::Tensor> tensors_, before_;
};

}  // namespace phalanx
