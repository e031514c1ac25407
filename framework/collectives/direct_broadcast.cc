// SPDX-License-Identifier: Apache-2.0
// Direct broadcast: the root sends the tensor to all other ranks at once.
//
// Steps: 1, of P - 1 messages. On the wire: n (P - 1) bytes from the root. For few ranks.
#include "framework/collectives/direct.h"
#include "framework/collectives/steps.h"

namespace phalanx {

using namespace collectives;

namespace {

void direct_broadcast(Communicator& group, const Operation& operation) {
  if (group.rank() != operation.root()) return recv(group, operation.output, operation.root());
  std::vector<Work> works;
  for (int step = 1; step < group.size(); ++step) {
    works.push_back(start_send(group, operation.output, mod(operation.root() + step, group.size())));
  }
  wait_all(works);
}

const bool direct_broadcast_registered =
    Algorithms::global().add({.op = Op::kBroadcast,
                              .name = "direct",
                              .about = "1 step of P - 1 messages, n (P - 1) bytes from the root; for few ranks",
                              .run = direct_broadcast});

}  // namespace
}  // namespace phalanx
