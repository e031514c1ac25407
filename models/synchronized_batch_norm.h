// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

namespace phalanx {

struct BatchStatistics;  // framework/parallel/sync_batch_norm.h

/// A model whose batch-norm layers can see the samples of all ranks. Implemented by Network (models/network.h).
class SynchronizedBatchNorm {
 public:
  virtual ~SynchronizedBatchNorm() = default;

  /// From now on, all batch-norm layers compute mean and variance over the samples that `statistics` describes. Returns
  /// the number of these layers. Throws ConfigError if one of them does not support it.
  virtual std::int64_t synchronize_batch_norm(const std::shared_ptr<const BatchStatistics>& statistics) = 0;
};

}  // namespace phalanx
