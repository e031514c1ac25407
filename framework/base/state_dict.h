// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// A tensor that a component keeps from one step to the next, for checkpoints. It is the tensor itself, not a copy: it
/// can be read and written.
struct StateEntry {
  std::string name;
  at::Tensor values;
  bool replicated = false;  // true if the values are the same on all ranks
};
using StateDict = std::vector<StateEntry>;

/// Appends `state` to `all`, with `prefix` before each name.
inline void append(StateDict& all, const std::string& prefix, StateDict state) {
  for (auto& one : state) all.push_back({prefix + one.name, std::move(one.values), one.replicated});
}

}  // namespace phalanx
