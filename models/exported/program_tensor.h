// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>
#include <vector>

namespace phalanx::exported {

/// An input or output of a program, without the batch dimension.
struct ProgramTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  at::ScalarType dtype = at::kFloat;
};

}  // namespace phalanx::exported
