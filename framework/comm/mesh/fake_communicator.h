// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A world in which only one rank exists, for examining what that rank would do. It cannot learn the arguments that
/// other ranks would pass to split(), so callers that know the members of a group state them here (as Mesh does).
class FakeCommunicator : public Communicator {
 public:
  /// Returns the group of these ranks, in ascending order. They include this rank.
  virtual CommunicatorPtr group_of(std::vector<int> ranks) = 0;
};

/// Returns the group of these ranks of `parent`, in ascending order; null on the other ranks. All of them must pass the
/// same list. Collective.
inline CommunicatorPtr group_of(Communicator& parent, const std::vector<int>& ranks) {
  const bool inside = std::ranges::find(ranks, parent.rank()) != ranks.end();
  auto* const fake = dynamic_cast<FakeCommunicator*>(&parent);
  if (fake == nullptr) return parent.split(inside ? 0 : -1, parent.rank());
  return inside ? fake->group_of(ranks) : nullptr;
}

}  // namespace phalanx
