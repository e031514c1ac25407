#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// What the ranks of a group agree on in every step: the greatest of their ballots, read some steps after it was cast.
/// By then all ranks have long cast theirs: a vote costs a small all-reduce and no waiting, unless a rank is that many
/// steps ahead of the slowest.
class DelayedVote {
 public:
  /// delay: at least 1.
  DelayedVote(CommunicatorPtr group, std::int64_t delay);

  /// The greatest ballot of the call `delay` calls before; 0 in the first ones. Waits for it.
  std::int64_t read();

  /// After each read().
  void cast(std::int64_t ballot);

 private:
  struct Cast {
    at::Tensor ballot;  // [1] int64
    Work sent;
  };

  CommunicatorPtr group_;
  std::vector<Cast> cast_;  // the last `delay`, in turn
  std::size_t oldest_ = 0;  // of them
};

}  // namespace phalanx
