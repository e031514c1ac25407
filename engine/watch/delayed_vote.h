// SPDX-License-Identifier: Apache-2.0
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
/// A vote is an all-reduce, or messages from each to each, of 8 bytes to each other rank. An all-reduce that was
/// launched is carried out before whatever is launched and waited for after it: messages are for ranks that go on to
/// agree on something else, with others, while the slowest has not yet voted. These are ranks that may be several steps
/// apart, and those of a pipeline (`apart`), whose steps do not end at the same time.
class DelayedVote {
 public:
  /// delay: at least 1. Votes of one group are cast in the same order on all of its ranks.
  explicit DelayedVote(CommunicatorPtr group, std::int64_t delay = 1, bool apart = false);

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
  bool by_messages_;
  std::vector<Cast> cast_;  // the last `delay`, in turn
  std::size_t oldest_ = 0;  // of them
};

}  // namespace phalanx
