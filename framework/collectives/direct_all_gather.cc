// SPDX-License-Identifier: Apache-2.0
// Direct all-gather: each rank sends its part to every other, all at once.
//
// Steps: 1, of P - 1 messages. On the wire: n (P - 1) / P bytes per rank when parts are equal, which is the least
// possible. A rank sends its own part P - 1 times. For few ranks.
#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"
#include "framework/comm/operations/part_layout.h"

namespace phalanx {

using namespace collectives;

void direct_all_gather(Communicator& group, const Operation& operation) {
  const int own = group.rank(), ranks = group.size();
  const PartLayout parts(operation.input_counts, ranks, operation.output.numel());
  std::vector<Work> works;
  for (int step = 1; step < ranks; ++step) {
    const int from = mod(own - step, ranks);
    works.push_back(start_recv(group, parts.of(operation.output, from), from));
  }
  for (int step = 1; step < ranks; ++step) works.push_back(start_send(group, operation.input, mod(own + step, ranks)));
  copy(parts.of(operation.output, own), operation.input);
  wait_all(works);
}

namespace {

const bool direct_all_gather_registered =
    Algorithms::global().add({.op = Op::kAllGather,
                              .name = "direct",
                              .about = "1 step of P - 1 messages, n (P - 1) / P bytes per rank; for few ranks",
                              .run = direct_all_gather});

}  // namespace
}  // namespace phalanx
