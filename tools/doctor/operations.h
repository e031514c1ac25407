// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx::doctor {

/// One row of the table of operations, and its test.
struct ProvedOperation {
  std::string name;
  bool (*proof)(Communicator& world);  // runs it on a few elements; true if this rank has the right result
};

/// Returns all operations of Communicator, in the order of its header.
const std::vector<ProvedOperation>& operations();

}  // namespace phalanx::doctor
