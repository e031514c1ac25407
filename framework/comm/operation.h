// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/comm/call.h"
#include "framework/comm/reduction.h"
#include "framework/comm/store.h"

namespace phalanx {

/// One operation with all its arguments: what Communicator's functions make of theirs, and what algorithms are given.
/// What an operation does not have stays empty.
struct Operation {
  Call call{};          // which operation, of what, and with whom
  at::Tensor output{};  // also what is both: the tensor of broadcast, reduce, all_reduce, send and recv
  at::Tensor input{};
  Reduction reduction{};
  std::vector<std::int64_t> output_counts{};  // of all_to_all
  std::vector<std::int64_t> input_counts{};   // of all_to_all; the counts of all others
  std::optional<Seconds> timeout{};           // of barrier; absent: the group's

  int root() const { return call.peer; }
};

/// Memory that a communicator is asked for.
struct Allocation {
  Call call{};  // Op::kAllocate or Op::kAllocateShared; its `detail` is a hash of the sizes
  at::IntArrayRef sizes{};
  at::TensorOptions options{};

  bool shared() const { return call.op == Op::kAllocateShared; }
  std::size_t bytes() const { return static_cast<std::size_t>(call.elements) * options.dtype().itemsize(); }
};

}  // namespace phalanx
