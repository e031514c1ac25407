#pragma once

#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A world of which one rank alone is there: for looking at what that rank would do. Nobody can tell it what the others
/// would ask of split(), so whoever knows who belongs to a group says it here (Mesh does).
class PeerlessWorld : public Communicator {
 public:
  /// The group of these ranks, ascending, of which this one is one.
  virtual CommunicatorPtr group_of(std::vector<int> ranks) = 0;
};

}  // namespace phalanx
