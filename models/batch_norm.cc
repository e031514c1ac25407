// SPDX-License-Identifier: Apache-2.0
#include "models/batch_norm.h"

#include <ATen/ops/batch_norm.h>

#include "framework/parallel/batch_variance.h"
#include "framework/parallel/checkpointed.h"
#include "framework/parallel/padding_rows.h"

namespace phalanx {

at::Tensor BatchNorm2dImpl::forward(const at::Tensor& input) {
  if (is_training() && !statistics_) {
    if (PaddingRows::current() && options.track_running_stats()) {
      // Clones the statistics, since another micro-batch may change them before this one's gradient is computed.
      return at::batch_norm(input, weight, bias, running_mean.clone(), running_var.clone(), /*training=*/false, 0,
                            options.eps(), /*cudnn_enabled=*/false);
    }
    require_variance(input);
  }
  if (!is_training() || (!statistics_ && !recomputing())) return torch::nn::BatchNorm2dImpl::forward(input);
  TORCH_CHECK(options.affine() && options.track_running_stats() && options.momentum().has_value(),
              "synchronized or recomputed batch norm needs layers with weight, statistics and a momentum");
  RunningStatistics running{.momentum = *options.momentum()};
  if (!recomputing()) {
    num_batches_tracked.add_(1);
    running.mean = running_mean;
    running.variance = running_var;
  }
  if (statistics_) return sync_batch_norm(input, weight, bias, running, options.eps(), *statistics_);
  return at::batch_norm(input, weight, bias, {}, {}, /*training=*/true, running.momentum, options.eps(), false);
}

}  // namespace phalanx
