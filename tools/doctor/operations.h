// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx::doctor {

/// One row of the table of operations, and its test.
struct OperationCheck {
  std::string name;
  bool (*passes)(Communicator& world);  // runs it on a few elements; true if this rank has the right result
};

/// Returns all operations of Communicator, in the order of its header.
const std::vector<OperationCheck>& operations();

}  // namespace phalanx::doctor
