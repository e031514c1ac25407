// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <memory>
#include <utility>

#include "framework/parallel/sync_batch_norm.h"

namespace phalanx {

/// torch::nn::BatchNorm2d, with the same parameters and buffers, that can take its statistics over all ranks, and keeps
/// those of a batch once, also where its activations are computed twice (framework/parallel/checkpointed.h). It learns
/// nothing of padding alone (framework/parallel/padding_rows.h).
class BatchNorm2dImpl final : public torch::nn::BatchNorm2dImpl {
 public:
  using torch::nn::BatchNorm2dImpl::BatchNorm2dImpl;

  at::Tensor forward(const at::Tensor& input);

  /// From now on, in training, over the samples that `statistics` says.
  void synchronize(std::shared_ptr<const BatchStatistics> statistics) { statistics_ = std::move(statistics); }

 private:
  std::shared_ptr<const BatchStatistics> statistics_;  // null: of the input alone
};
TORCH_MODULE(BatchNorm2d);

}  // namespace phalanx
