// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "framework/comm/communicator.h"
#include "framework/partition/placement.h"
#include "framework/partition/vocabulary_shard.h"

namespace phalanx {

/// The division of a model among the ranks of a tensor group: names of layers, where * matches any part of a name, and
/// the style of each layer (models/tensor_parallel_layer.h), as in {"transformer.h.*.attn.c_attn", "column"}. Layers
/// that no pattern matches stay whole.
using TensorPlan = std::map<std::string, std::string>;

/// A model whose layers can be sharded among ranks. Network (models/network.h) implements partition_layers(), so a
/// network only overrides tensor_plan() if it needs a different plan.
class TensorParallel {
 public:
  virtual ~TensorParallel() = default;

  /// Returns the plan that suits the model, or an empty plan if it has none.
  virtual TensorPlan tensor_plan() const { return {}; }

  /// Keeps this rank's part of the layers that `plan` names; from now on, the model computes together with the other
  /// ranks of `group`. Returns the placements of the sharded parameters; all others stay whole on each rank. Must be
  /// called once, before the model is used, with the same plan on all ranks. Throws ConfigError for a pattern that
  /// matches no layer, for a layer that two patterns match, and for a layer that cannot be sharded in this style.
  virtual Placements partition_layers(const TensorPlan& plan, const CommunicatorPtr& group) = 0;

  /// From now on, if ranks divide the class scores that are the model's only output, the output has only the scores of
  /// this rank's classes; the result describes them. Returns null if the output keeps all scores.
  virtual VocabularyShardPtr keep_logits_sharded() { return nullptr; }
};

}  // namespace phalanx
