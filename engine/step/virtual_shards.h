// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/step/current_step.h"
#include "engine/strategies/canonical_sum.h"
#include "framework/parallel/step.h"

namespace phalanx {

/// Computes a batch in virtual shards, whose number in a global batch is independent of the number of ranks, so that
/// the result of a shard does not depend on the ranks either. The rows of a shard have their own memory, random numbers
/// are seeded for each shard, and each shard starts with the buffers (running statistics) from the beginning of the
/// step. After the step, the buffers have changed by the mean of the shards' changes. So a rank whose buffers were
/// wrong before the step still differs from the others, and a ReplicaCheck finds it.
///
/// A watcher sees each stage once, after the last shard.
class VirtualShards final : public Step {
 public:
  struct Options {
    int shards = 1;                              // of a global batch; a multiple of the group's size
    std::shared_ptr<const CurrentStep> current;  // the step, from whose seed each shard's generator is seeded
    std::function<void()> on_empty{};            // called in a step in which this rank has no sample; may be null
  };
  /// Called after a shard's backward, when the gradients belong to this shard alone. Must take them away and zero them.
  using TakeGradients = std::function<void(int shard)>;

  /// `step` computes a shard as one of `options.shards` ranks, and must outlive this object. `buffers` must be the
  /// model's.
  VirtualShards(Step& step, CommunicatorPtr group, std::vector<at::Tensor> buffers, Options options,
                TakeGradients take);

  Result run(const Batch& batch, const Watch& watch) override;
  Result evaluate(const Batch& batch, const Watch& watch) override;

 private:
  Batch shard_of(const Batch& batch, int shard) const;
  void average_changes(const at::Tensor& before, std::int64_t global_rows);

  Step& step_;
  CommunicatorPtr group_;
  std::vector<at::Tensor> averaged_, counted_;  // floating-point buffers, and the others
  Options options_;
  TakeGradients take_;
  CanonicalSum buffer_sum_;
};

}  // namespace phalanx
