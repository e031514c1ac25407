#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// What the ranks of a group agree on in every step: the greatest of their ballots, read some steps after it was cast.
/// By then all ranks have long cast theirs: a vote costs a little communication and no waiting, unless a rank is that
/// many steps ahead of the slowest.
///
/// With a delay of 1 a vote is an all-reduce. As ranks that may be further apart have to pass steps in which they agree
/// on something else, with others, and a vote that was launched before would be carried out first, theirs are messages
/// from each to each, which nothing waits for but read(): 8 bytes to each other rank.
class DelayedVote {
 public:
  /// delay: at least 1. Votes of one group are cast in the same order on all of its ranks.
  DelayedVote(CommunicatorPtr group, std::int64_t delay);

  /// The greatest ballot of the call `delay` calls before; 0 in the first ones. Waits for it.
  std::int64_t read();

  /// After each read().
  void cast(std::int64_t ballot);

 private:
  struct Cast {
    at::Tensor ballots;  // [1] int64, or one of each rank
    std::vector<Work> sent;
  };

  void send_to_all(Cast& cast) const;

  CommunicatorPtr group_;
  std::vector<Cast> cast_;  // the last `delay`, in turn
  std::size_t oldest_ = 0;  // of them
};

}  // namespace phalanx
