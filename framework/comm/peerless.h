// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A world of which one rank alone is there: for looking at what that rank would do. Nobody can tell it what the others
/// would ask of split(), so whoever knows who belongs to a group says it here (Mesh does).
class PeerlessWorld : public Communicator {
 public:
  /// The group of these ranks of this one, ascending, of which this rank is one.
  virtual CommunicatorPtr group_of(std::vector<int> ranks) = 0;
};

/// The group of these ranks of `parent`, ascending and named alike by all of them; null on the others. Collective.
inline CommunicatorPtr group_of(Communicator& parent, const std::vector<int>& ranks) {
  const bool inside = std::ranges::find(ranks, parent.rank()) != ranks.end();
  auto* const peerless = dynamic_cast<PeerlessWorld*>(&parent);
  if (peerless == nullptr) return parent.split(inside ? 0 : -1, parent.rank());
  return inside ? peerless->group_of(ranks) : nullptr;
}

}  // namespace phalanx
