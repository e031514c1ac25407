// SPDX-License-Identifier: Apache-2.0
#include "phalanx/internal/fused_updates.h"

#include <ATen/core/grad_mode.h>

namespace phalanx {

FusedOptimizer::Updates::Updates(DistributedDataParallel::Replica& replica, std::unique_ptr<Optimizer> optimizer,
                                 ClipLimits limits)
    : replica_(replica),
      optimizer_(
          std::move(optimizer), limits,
          [&replica](at::Tensor& sums) { replica.exchange().strategy().sum_over_slices(sums); }, Clip::Parts(),
          replica.exchange().parameters().buckets().front().values.device()) {
  replica_.attach(optimizer_, [this] { step(); });
}

void FusedOptimizer::Updates::step() {
  const at::NoGradGuard no_grad;
  auto& exchange = replica_.exchange();
  exchange.require_values_in_buckets();
  exchange.take_gradients();
  if (excluded_ != exchange.unused()) {
    excluded_ = exchange.unused();
    optimizer_.exclude(excluded_);
  }
  optimizer_.update();
  replica_.after_step();
}

}  // namespace phalanx
