// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx::doctor {

/// One row of the table of operations, and its proof.
struct ProvedOperation {
  std::string name;
  bool (*proof)(Communicator& world);  // does it on a few elements; whether this rank has what it should
};

/// Every operation of Communicator, in the order of its header.
const std::vector<ProvedOperation>& operations();

}  // namespace phalanx::doctor
