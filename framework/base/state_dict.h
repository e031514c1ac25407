// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// A tensor that something keeps from one step to the next, for checkpoints: the tensor itself, to be read or written.
struct StateEntry {
  std::string name;
  at::Tensor values;
  bool alike = false;  // on all ranks
};
using StateDict = std::vector<StateEntry>;

/// Appends `state` to `all`, with `prefix` before each name.
inline void append(StateDict& all, const std::string& prefix, StateDict state) {
  for (auto& one : state) all.push_back({prefix + one.name, std::move(one.values), one.alike});
}

}  // namespace phalanx
