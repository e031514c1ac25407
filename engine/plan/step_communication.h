// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "engine/plan/operation_counts.h"
#include "framework/comm/mesh/mesh.h"

namespace phalanx {

/// The communication of a training step, over all ranks.
struct StepCommunication {
  std::int64_t bytes = 0;        // that the ranks send (wire_bytes())
  std::int64_t collectives = 0;  // number of collectives, each counted once for the group that calls it
};

/// Returns the communication of a step from the sums of its operations over all ranks (over_ranks()).
StepCommunication communication_of(const MeshShape& shape, const OperationCounts& over_ranks);

/// The communication of a real step, compared with the plan of a step. The same on all ranks.
struct TrafficComparison {
  StepCommunication planned{};
  StepCommunication seen{};
  std::string differences{};  // between planned and real operations (differences()); empty: none
};

}  // namespace phalanx
