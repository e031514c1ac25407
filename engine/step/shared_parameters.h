// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Parameters that some ranks of one replica have alike, such as a tied embedding in two stages of a pipeline, or layer
/// norms on tensor ranks, as one of these ranks sees them. All functions are collective over these ranks. Values travel
/// as messages, so that the first rank waits for nobody before a step.
class SharedParameters {
 public:
  /// Who updates them, and with which gradients. Where the first rank does, the others have its values before the next
  /// step, and no gradients after one.
  enum class Updates {
    kAlike,      // every rank its own, to the same bits, with the sum of all ranks' gradients
    kNearly,     // the same up to rounding: before each step all take the values of the first rank
    kOnce,       // the first rank, with that sum
    kOnceAsOne,  // the first rank, with its own gradients, which are those of every other rank
  };

  struct Group {
    CommunicatorPtr ranks;
    std::vector<at::Tensor> parameters;  // in the same order on all of them
  };

  SharedParameters() = default;

  /// Where others update a parameter for this rank, makes its grad, which is in no bucket.
  SharedParameters(std::vector<Group> groups, Updates updates);

  void before_step();

  /// After backward: gradients become those to update with.
  void add_up_gradients();

  /// Where the first rank alone updates them, gives the others its values: for whoever looks at these between two
  /// steps.
  void lend() const;

 private:
  bool lends() const { return updates_ == Updates::kOnce || updates_ == Updates::kOnceAsOne; }
  bool lent_to(const Group& group) const { return lends() && group.ranks->rank() > 0; }
  void add_up(const Group& group, const at::Tensor& gradient) const;
  std::vector<Work> take_first_values() const;

  std::vector<Group> groups_;
  Updates updates_ = Updates::kAlike;
  std::vector<Work> sent_;  // values, which do not change before others have them
};

}  // namespace phalanx
