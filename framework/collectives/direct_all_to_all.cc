// SPDX-License-Identifier: Apache-2.0
// Direct all-to-all, for even and uneven parts: each rank sends its parts to all other ranks at once.
//
// Steps: 1, of P - 1 messages. On the wire: each rank sends every part but its own once, n (P - 1) / P bytes when parts
// are equal, which is the least possible. For few ranks.
#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {

using namespace collectives;

namespace {

void direct_all_to_all(Communicator& group, const Operation& operation) {
  const int own = group.rank(), ranks = group.size();
  const PartLayout from(operation.output_counts, ranks, operation.output.numel());
  const PartLayout to(operation.input_counts, ranks, operation.input.numel());
  std::vector<Work> works;
  for (int step = 1; step < ranks; ++step) {
    const int left = mod(own - step, ranks);
    works.push_back(start_recv(group, from.of(operation.output, left), left));
  }
  for (int step = 1; step < ranks; ++step) {
    const int right = mod(own + step, ranks);
    works.push_back(start_send(group, to.of(operation.input, right), right));
  }
  copy(from.of(operation.output, own), to.of(operation.input, own));
  wait_all(works);
}

const bool direct_all_to_all_registered =
    Algorithms::global().add({.op = Op::kAllToAll,
                              .name = "direct",
                              .about = "1 step of P - 1 messages, n (P - 1) / P bytes per rank; for few ranks",
                              .run = direct_all_to_all});

}  // namespace
}  // namespace phalanx
