// SPDX-License-Identifier: Apache-2.0
// Direct scatter: the root sends each rank its part.
//
// Steps: 1, of P - 1 messages from the root. On the wire: all parts but the root's own, which is the least possible.
#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {

using namespace collectives;

namespace {

void direct_scatter(Communicator& group, const Operation& operation) {
  if (group.rank() != operation.root()) return recv(group, operation.output, operation.root());
  const PartLayout parts(operation.input_counts, group.size(), operation.input.numel());
  std::vector<Work> works;
  for (int rank = 0; rank < group.size(); ++rank) {
    if (rank != operation.root()) works.push_back(start_send(group, parts.of(operation.input, rank), rank));
  }
  copy(operation.output, parts.of(operation.input, operation.root()));
  wait_all(works);
}

const bool direct_scatter_registered = Algorithms::global().add(
    {.op = Op::kScatter,
     .name = "direct",
     .about = "1 step of P - 1 messages from the root, n (P - 1) / P bytes; for few ranks or long tensors",
     .run = direct_scatter});

}  // namespace
}  // namespace phalanx
