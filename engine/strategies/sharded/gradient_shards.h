// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "engine/strategies/sharded/buffer_pool.h"
#include "engine/strategies/sharded/shards.h"
#include "framework/comm/communicator.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// This rank's shard of the mean gradients of all buckets. Between two backwards it is the only memory for gradients: a
/// parameter's grad is made by autograd and freed when its bucket is reduced. Reduced gradients are added to the shard,
/// so several backwards accumulate. All ranks must reduce the buckets in the same order.
class GradientShards {
 public:
  /// Frees the gradients of the buckets. `local_gradients`: see StrategyContext.
  using LocalGradients = std::function<void(const at::Tensor& gradients)>;
  GradientShards(CommunicatorPtr group, const FlatParameters& parameters, const std::vector<Shards>& shards,
                 LocalGradients local_gradients);

  /// Returns this rank's shard of a bucket, [count of the shard]. Shards start as zeros.
  const at::Tensor& shard(std::size_t bucket) const { return parts_[bucket].own; }

  /// Frees the existing grads of the bucket's parameters and launches the reduction of the bucket, with at most two
  /// reductions in flight. Called once for each bucket in a backward.
  void reduce(std::size_t bucket);

  /// Reduces the buckets that were not reduced in this backward, and waits for all of them. The next backward may then
  /// start.
  void complete();

  std::int64_t bytes() const;                                  // of the shards
  std::int64_t buffer_bytes() const { return pool_.bytes(); }  // of buckets in flight

 private:
  struct Part {
    Bucket bucket;
    Shards shards;
    at::Tensor own;
    bool reduced = false;
  };
  struct InFlight {
    std::size_t bucket;
    at::Tensor buffer;
    Work work;
  };

  void add_oldest();

  CommunicatorPtr group_;
  LocalGradients local_gradients_;
  BufferPool pool_;
  std::vector<Part> parts_;
  std::deque<InFlight> in_flight_;
};

}  // namespace phalanx
