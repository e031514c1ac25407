// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "engine/sync/canonical_sum.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// Takes a batch in the virtual shards that the global batch has, however many ranks there are, so that what a shard
/// computes does not depend on the ranks: its rows lie in memory of their own, random numbers begin anew with each, and
/// each begins with the buffers (running statistics) that the step began with. After the step the buffers are the mean
/// of those that the shards have made.
///
/// Who watches sees each stage once, after the last shard.
class VirtualShards final : public Step {
 public:
  struct Options {
    int shards = 1;          // of a global batch; a multiple of the group's size
    std::uint64_t seed = 0;  // of the random numbers
  };
  /// After a shard's backward, the gradients are its own alone; to be taken away, and zeroed.
  using TakeGradients = std::function<void(int shard)>;

  /// `step` takes a shard as one of `options.shards` ranks, and must outlive this one. `buffers`: the model's.
  VirtualShards(Step& step, CommunicatorPtr group, std::vector<at::Tensor> buffers, Options options,
                TakeGradients take);

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

  /// The step with which random numbers go on: 0 at first, and one more after each run().
  void set_step(std::int64_t step) { step_number_ = step; }

 private:
  class Gathered;

  Batch shard_of(const Batch& batch, int shard) const;
  void average_buffers(std::int64_t global_rows);

  Step& step_;
  CommunicatorPtr group_;
  std::vector<at::Tensor> averaged_, counted_;  // floating-point buffers, and others
  Options options_;
  TakeGradients take_;
  CanonicalSum buffer_sum_;
  std::int64_t step_number_ = 0;
};

}  // namespace phalanx
