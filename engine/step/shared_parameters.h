// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Parameters that several ranks of one replica share, such as an embedding that is tied between two stages of a
/// pipeline, or layer norms on tensor ranks, as seen by one of these ranks. All functions are collective over these
/// ranks. Values are sent as messages, so the first rank does not wait for other ranks before a step.
class SharedParameters {
 public:
  /// Defines which ranks update them and with which gradients. If only the first rank does, the others get its values
  /// before the next step and have no gradients after a step.
  enum class Updates {
    kAlike,      // every rank, with the same bits, using the sum of all ranks' gradients
    kNearly,     // as kAlike but only up to rounding, so before each step all ranks take the values of the first one
    kOnce,       // the first rank, using that sum
    kOnceAsOne,  // the first rank, using its own gradients, which all other ranks have too
  };

  struct Group {
    CommunicatorPtr ranks;
    std::vector<at::Tensor> parameters;  // in the same order on all ranks
  };

  SharedParameters() = default;

  /// For parameters that another rank updates, allocates grads, because they are in no bucket.
  SharedParameters(std::vector<Group> groups, Updates updates);

  void before_step();

  /// Turns the gradients after backward into those for the update.
  void add_up_gradients();

  /// If only the first rank updates the parameters, copies its values to the others. Needed by code that reads them
  /// between two steps.
  void lend() const;

 private:
  bool lends() const { return updates_ == Updates::kOnce || updates_ == Updates::kOnceAsOne; }
  bool lent_to(const Group& group) const { return lends() && group.ranks->rank() > 0; }
  void add_up(const Group& group, const at::Tensor& gradient) const;
  std::vector<Work> take_first_values() const;

  std::vector<Group> groups_;
  Updates updates_ = Updates::kAlike;
  std::vector<Work> sent_;  // sends of values, which must not change before they are complete
};

}  // namespace phalanx
