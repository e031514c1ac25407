// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/step/step_listener.h"
#include "framework/comm/communicator.h"

namespace phalanx {

/// Keeps parameters in agreement that several ranks of one replica share, such as an embedding that is tied between two
/// stages of a pipeline, or layer norms on tensor ranks. All functions are collective over the ranks of each group.
/// Values are sent as messages, so the first rank of a group does not wait for the others before a step.
class SharedParameters final : public StepListener {
 public:
  /// Defines which ranks update the parameters and with which gradients. The first rank of a group is their owner. If
  /// only the owner updates them, it broadcasts its values before the next step, and the others have no gradients after
  /// a step.
  enum class Updates {
    kReplicated,                // every rank, with the same bits, using the sum of all ranks' gradients
    kReplicatedWithResync,      // every rank, equal only up to rounding, so the owner broadcasts before each step
    kOwnerWithSummedGradients,  // the owner, using the sum
    kOwnerWithOwnGradients,     // the owner, using its own gradients, which all other ranks have too
  };
  struct Group {
    CommunicatorPtr ranks;
    std::vector<at::Tensor> parameters;  // in the same order on all ranks
  };

  /// Allocates grads of the parameters that another rank updates, because they are in no bucket.
  SharedParameters(std::vector<Group> groups, Updates updates);

  /// Takes the owner's values, except with kReplicated.
  void before_step(const Batch& batch) override;

  /// Turns the gradients after backward into those for the update.
  void after_backward() override;

  /// Copies the owner's values to the other ranks if only the owner updates the parameters. Needed by code that reads
  /// them between two steps.
  void broadcast_from_owner() const;

 private:
  bool owner_updates() const;
  bool updated_elsewhere(const Group& group) const { return owner_updates() && group.ranks->rank() > 0; }
  void sum_gradient(const Group& group, const at::Tensor& gradient) const;
  std::vector<Work> exchange_values() const;

  std::vector<Group> groups_;
  Updates updates_;
  std::vector<Work> sent_;  // sends of values, which must not change before they are complete
};

}  // namespace phalanx
