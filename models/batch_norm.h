// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <memory>
#include <utility>

#include "framework/parallel/sync_batch_norm.h"

namespace phalanx {

/// A torch::nn::BatchNorm2d, with the same parameters and buffers, that can compute its statistics over all ranks. It
/// updates the running statistics only once for a batch whose activations are computed twice
/// (framework/parallel/checkpointed.h), and not at all for a batch of padding rows (framework/parallel/padding_rows.h).
class BatchNorm2dImpl final : public torch::nn::BatchNorm2dImpl {
 public:
  using torch::nn::BatchNorm2dImpl::BatchNorm2dImpl;

  at::Tensor forward(const at::Tensor& input);

  /// From now on, computes the statistics in training over the samples that `statistics` describes.
  void synchronize(std::shared_ptr<const BatchStatistics> statistics) { statistics_ = std::move(statistics); }

 private:
  std::shared_ptr<const BatchStatistics> statistics_;  // null: statistics of the input
};
TORCH_MODULE(BatchNorm2d);

}  // namespace phalanx
