#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace phalanx {

/// A tensor that something keeps from one step to the next, for checkpoints: the tensor itself, to be read or written.
struct Remembered {
  std::string name;
  at::Tensor values;
  bool alike = false;  // on all ranks
};
using Memory = std::vector<Remembered>;

/// Appends `memory` to `all`, with `prefix` before each name.
inline void append(Memory& all, const std::string& prefix, Memory memory) {
  for (auto& one : memory) all.push_back({prefix + one.name, std::move(one.values), one.alike});
}

}  // namespace phalanx
