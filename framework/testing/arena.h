// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx::testing {

/// The kind of memory of a test's tensors.
enum class Memory {
  kPrivate,    // private to this rank
  kAllocated,  // from Communicator::allocate()
  kMixed,      // alternately, in a different order on each rank
};
const char* to_string(Memory memory);

/// Provides tensors with guards around them, which reveal writes outside an operation's output. The tensors are aligned
/// to the size of their element and no more.
///
/// The constructor is collective. In each test of a few tensors, call reset(), take() the tensors, and check
/// guards_are_intact().
class Arena {
 public:
  /// `bytes` is the total size of the tensors between two resets.
  Arena(Communicator& group, Memory memory, std::size_t bytes);

  void reset();
  at::Tensor take(std::int64_t elements, at::ScalarType dtype);  // one-dimensional, with arbitrary contents
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
