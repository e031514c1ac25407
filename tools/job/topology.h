#pragma once

#include <string>

#include "framework/collectives/selection/topology.h"

namespace phalanx {

/// The topology of a world that `backend` connects, with the version of MPI where that uses it. Collective.
Topology world_topology(Communicator& world, const std::string& backend);

}  // namespace phalanx
