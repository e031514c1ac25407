#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Parameters that some ranks of a pipeline have alike, such as tied embeddings, as one of these ranks sees them. Each
/// computes a part of their gradients. All functions are collective over the pipeline. Values travel as messages, so
/// that the first rank waits for nobody before a step.
class SharedParameters {
 public:
  /// Who updates them with their gradients.
  enum class Updates {
    kAlike,   // every rank its own, to the same bits
    kNearly,  // the same up to rounding: before each step all take the values of the first rank
    kOnce,    // the first rank; others have its values before the next step, and no gradients after one
  };

  struct Group {
    CommunicatorPtr ranks;
    std::vector<at::Tensor> parameters;  // in the same order on all of them
  };

  SharedParameters() = default;

  /// Where others update a parameter for this rank, makes its grad, which is in no bucket.
  SharedParameters(std::vector<Group> groups, Updates updates);

  void before_step();

  /// After backward: gradients become the sums over their ranks.
  void add_up_gradients();

  /// Where the first rank alone updates them, gives the others its values: for whoever looks at these between two
  /// steps.
  void lend() const;

 private:
  bool lent_to(const Group& group) const { return updates_ == Updates::kOnce && group.ranks->rank() > 0; }
  std::vector<Work> take_first_values() const;

  std::vector<Group> groups_;
  Updates updates_ = Updates::kAlike;
  std::vector<Work> sent_;  // values, which do not change before others have them
};

}  // namespace phalanx
