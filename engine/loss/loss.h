// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "framework/base/registry.h"
#include "framework/parallel/sharded_logits.h"
#include "framework/partition/vocabulary_shard.h"

namespace phalanx {

/// A loss function to minimise.
class Loss {
 public:
  virtual ~Loss() = default;

  /// Returns the mean over all targets that are not kIgnored, of which there is at least one: [n, ...], [n, ...] -> [],
  /// in the predictions' dtype, except for takes_16_bits(). Throws ConfigError if the shapes do not match.
  virtual at::Tensor mean(const at::Tensor& output, const at::Tensor& target) const = 0;

  /// Returns true if predictions on devices may have 16 bits: the loss then computes in float32, without a copy of all
  /// predictions, and returns it.
  virtual bool takes_16_bits() const { return false; }

  /// Returns the mean() over all scores if ranks divide the class scores in the output's last dimension, on each of
  /// these ranks. Gathers the scores unless a loss can avoid it. Collective.
  virtual at::Tensor mean_of_parts(const at::Tensor& part, const VocabularyShard& parts,
                                   const at::Tensor& target) const {
    return mean(gather_logits(part, parts), target);
  }
};

/// Losses by name; "auto" creates none, which selects the task's default.
using Losses = Registry<std::shared_ptr<const Loss>()>;

}  // namespace phalanx
