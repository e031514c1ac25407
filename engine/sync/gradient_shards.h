// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "engine/sync/buffer_pool.h"
#include "engine/sync/shards.h"
#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// This rank's part of the mean gradients of all buckets, and nothing else of them between two backwards: a parameter
/// has a grad of its own, which autograd makes, until its bucket is reduced. What is reduced is added to the part, so
/// that several backwards add up. Ranks reduce the buckets in the same order.
class GradientShards {
 public:
  /// Frees the gradients of the buckets.
  GradientShards(CommunicatorPtr group, const FlatParameters& parameters, const std::vector<Shards>& shards);

  /// [count of the own part] each; zeros at the beginning.
  const at::Tensor& shard(std::size_t bucket) const { return parts_[bucket].own; }

  /// Frees the grad of the bucket's parameters, those that have one, and launches its reduction; waits for that before
  /// the last one. Once in a backward.
  void reduce(std::size_t bucket);

  /// Reduces the buckets that were not yet, and waits for all; the next backward may begin.
  void complete();

  std::int64_t bytes() const;                                  // of the parts
  std::int64_t buffer_bytes() const { return pool_.bytes(); }  // of buckets on their way

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
  BufferPool pool_;
  std::vector<Part> parts_;
  std::deque<InFlight> in_flight_;
};

}  // namespace phalanx
