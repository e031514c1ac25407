// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "framework/backends/shared_memory/group.h"

namespace phalanx::shared_memory {

struct Survivors {
  std::vector<int> members;       // their ranks in the old group, ascending
  std::shared_ptr<void> control;  // memory of their new group's ControlBlock
};

/// Lets the remaining ranks of a group agree on the members of a new group; implements Communicator::shrink(). Breaks
/// the group, so that peers that wait for this rank in an operation find out.
///
/// The protocol works in shared memory, in rounds of one Ballot each:
///   1. A rank comes to the round. When every rank has come or is gone, or the group's timeout has passed, one of the
///      ranks that notice it claims the ballot by compare-and-swap. If that rank is gone, another one claims it. The
///      claimant records the ranks that have come and are not gone, creates the new group's memory and publishes both.
///      If it does not publish within the timeout, a rank that waits for it aborts the ballot.
///   2. Each of these ranks opens the memory and says that it is ready. A rank that sees that all are ready commits the
///      ballot. A rank that sees that one is gone before that, or not ready within the timeout, aborts it. Both use
///      compare-and-swap on the same word, so all ranks get the same result.
///   3. If the ballot is committed, its ranks are the new group. If it is aborted, all go on to the next round, which
///      counts again.
/// A rank that is gone never comes back, and a round counts without the ranks that are late for it, so there are at
/// most as many rounds as ranks. A late rank finds that a round was decided without it and gets CommError::kPeerLost.
Survivors agree_on_survivors(Group& group, const std::function<void()>& idle);

}  // namespace phalanx::shared_memory
