// SPDX-License-Identifier: Apache-2.0
// Direct gather: each rank sends its part to the root.
//
// Steps: 1, of P - 1 messages to the root. On the wire: each rank's own part, which is the least possible.
#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {

using namespace collectives;

namespace {

void direct_gather(Communicator& group, const Operation& operation) {
  if (group.rank() != operation.root()) return send(group, operation.input, operation.root());
  const PartLayout parts(operation.input_counts, group.size(), operation.output.numel());
  std::vector<Work> works;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank != operation.root()) works.push_back(start_recv(group, parts.of(operation.output, rank), rank));
  }
  copy(parts.of(operation.output, operation.root()), operation.input);
  wait_all(works);
}

const bool direct_gather_registered = Algorithms::global().add(
    {.op = Op::kGather,
     .name = "direct",
     .about = "1 step of P - 1 messages to the root, n / P bytes per rank; for few ranks or long tensors",
     .run = direct_gather});

}  // namespace
}  // namespace phalanx
