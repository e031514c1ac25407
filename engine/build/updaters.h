// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "engine/build/partition.h"
#include "engine/optim/clip.h"
#include "engine/strategies/strategy_traits.h"

namespace phalanx {

/// The ranks of a replica that update a parameter. Normally all ranks that hold it do, each with the same result. With
/// parameter servers, which have each parameter once, only the first holder does: two copies that servers update in the
/// order of arrival would diverge. That rank broadcasts the values to the other holders before the next
/// step.
class Updaters {
 public:
  /// `part` must outlive the object and its copies.
  Updaters(const PartitionedModel& part, const StrategyTraits& strategy)
      : part_(part), servers_(strategy.parameter_servers) {}

  const PartitionedModel& part() const { return part_; }

  /// Returns true if this rank updates a parameter that it holds.
  bool updates(const std::string& parameter) const;

  /// Returns true if several stages of a pipeline update the parameter, each with the sum of their gradients.
  bool several_stages_update(const std::string& parameter) const;

  /// Returns the trainable parameters of this rank that the first rank of the tensor axis updates for all of them.
  std::vector<at::Tensor> of_first_tensor_rank() const;

  /// Describes the norm of the whole replica's gradients as sums over ranks. If several of these ranks update the same
  /// parameter, each adds a fraction of its square. Experts that are sharded between ranks have a separate sum.
  Clip::Parts parts_of_norm() const;

 private:
  bool first_tensor_rank_updates(const std::string& parameter) const;

  const PartitionedModel& part_;
  bool servers_;
};

}  // namespace phalanx
