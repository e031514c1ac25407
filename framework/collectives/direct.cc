// SPDX-License-Identifier: Apache-2.0
#include "framework/collectives/direct.h"

namespace phalanx {

void run_directly(Communicator& group, const Operation& operation) {
  Algorithms::global().find(operation.call.op, "direct").run(group, operation);
}

}  // namespace phalanx
