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

/// The ranks of a group that are still there agree on who they are: Communicator::shrink(). Breaks the group, so that
/// peers that wait for this rank in an operation learn of it.
///
/// In memory, by rounds of one Ballot each:
///   1. A rank comes to the round. When every rank has come or is gone, or the group's timeout has passed, one of those
///      that notice claims the ballot (compare and swap; another one, if the one that has done so is gone), writes down
///      who has come and is not gone, makes the new group's memory and publishes both.
///   2. Each of these opens the memory and says that it is ready. Whoever sees that all are commits the ballot; whoever
///      sees that one of them is gone before that, or not ready within the timeout, aborts it. Both are a compare and
///      swap of the same word, so all ranks come to the same end.
///   3. Committed: that is the new group. Aborted: everybody goes on to the next round, which counts anew.
/// Who is gone stays so, therefore at most as many rounds are needed as there are ranks, but for ranks that are late:
/// these find that a round was decided without them and get CommError::kPeerLost.
Survivors agree_on_survivors(Group& group, const std::function<void()>& idle);

}  // namespace phalanx::shared_memory
