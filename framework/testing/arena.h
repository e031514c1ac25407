// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// Where the tensors of a test lie.
enum class Memory {
  kPrivate,    // of this rank alone
  kAllocated,  // from Communicator::allocate()
  kMixed,      // in turn, and in another order on every other rank
};
const char* to_string(Memory memory);

/// Tensors with guards around them: what an operation writes beside its output shows. They begin at addresses that are
/// multiples of their element's size, and of nothing else.
///
/// Collective to make. For each test of a few tensors: reset(), take() them, check guards_are_intact().
class Arena {
 public:
  /// `bytes`: of all tensors between two resets.
  Arena(Communicator& group, Memory memory, std::size_t bytes);

  void reset();
  at::Tensor take(std::int64_t elements, at::ScalarType dtype);  // one dimension; what it holds is arbitrary
  at::Tensor take(const at::Tensor& values);                     // a copy
  bool guards_are_intact() const;

 private:
  struct Region {
    at::Tensor bytes;
    std::size_t used = 0;
    std::vector<std::pair<std::size_t, std::size_t>> taken;  // [begin, end)
  };

  std::vector<Region> regions_;
  std::size_t first_;
  std::size_t takes_ = 0;
};

}  // namespace phalanx::testing
