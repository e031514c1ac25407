// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A vote of the ranks of a group in every step. Its result is the greatest of their ballots, which is read some steps
/// after it was cast. By then all ranks have usually cast their ballots, so a vote costs little communication and no
/// waiting, unless a rank is that many steps ahead of the slowest.
///
/// A vote is an all-reduce, or a message from each rank to each other rank, of 8 bytes. An all-reduce is carried out
/// before all operations that are launched and waited for after it. Messages are used if ranks must be able to
/// communicate with each other on something else while the slowest rank has not voted yet. This concerns ranks that may
/// be several steps apart, and ranks of a pipeline (`asynchronous`), whose steps do not end at the same time.
class DelayedVote {
 public:
  /// `delay` is at least 1. Votes of one group must be cast in the same order on all of its ranks.
  explicit DelayedVote(CommunicatorPtr group, std::int64_t delay = 1, bool asynchronous = false);

  /// Returns the greatest ballot of the cast() `delay` calls before; 0 in the first `delay` calls. Waits for it.
  std::int64_t read();

  /// Casts a ballot. Must be called after each read().
  void cast(std::int64_t ballot);

 private:
  struct PendingVote {
    at::Tensor ballots;  // int64: [1], or one element for each rank
    std::vector<Work> sent;
  };

  void send_to_all(PendingVote& cast) const;

  CommunicatorPtr group_;
  bool by_messages_;
  std::vector<PendingVote> pending_;  // ring of the last `delay` votes
  std::size_t oldest_ = 0;            // index in pending_
};

}  // namespace phalanx
