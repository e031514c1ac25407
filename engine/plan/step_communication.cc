// SPDX-License-Identifier: Apache-2.0
#include "engine/plan/step_communication.h"

#include <cmath>

namespace phalanx {

StepCommunication communication_of(const MeshShape& shape, const OperationCounts& over_ranks) {
  StepCommunication sum;
  double bytes = 0;
  for (const auto& [kind, count] : over_ranks) {
    const bool received = kind.op == Op::kRecv, message = received || kind.op == Op::kSend;
    const auto ranks = ranks_along(shape, kind.axes);
    if (!received) bytes += wire_bytes(kind.op, ranks, count.bytes);
    if (!message) sum.collectives += count.count / ranks;
  }
  sum.bytes = std::llround(bytes);
  return sum;
}

}  // namespace phalanx
