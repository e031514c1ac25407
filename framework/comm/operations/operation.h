// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "framework/comm/operations/call.h"
#include "framework/comm/operations/reduction.h"
#include "framework/comm/store/store.h"

namespace phalanx {

/// The way in which ranks that share memory perform an operation on tensors that they do not all reach. The results are
/// the same.
enum class NativeWay : std::uint8_t {
  kDefault,     // the backend chooses by the operation, its size and the number of ranks
  kKernelCopy,  // broadcast, all_gather, gather, scatter, all_to_all: each rank copies from the others' memory with a
                // system call
  kOneShot,     // all_reduce: each rank reads and combines everything
  kTwoShot,     // all_reduce: each rank combines a slice, and then reads the others' slices of the result
};

/// One operation with all its arguments, as Communicator's functions make it and algorithms receive it. Fields that an
/// operation does not have stay empty.
struct Operation {
  Call call{};          // the operation, its elements, and its root or peer
  at::Tensor output{};  // also the only tensor of broadcast, reduce, all_reduce, send and recv
  at::Tensor input{};
  Reduction reduction{};
  std::vector<std::int64_t> output_counts{};  // all_to_all only
  std::vector<std::int64_t> input_counts{};   // all_to_all, and the counts of every other operation that has counts
  std::optional<Seconds> timeout{};           // barrier only; absent: the group's timeout
  NativeWay way = NativeWay::kDefault;        // the same on all ranks; offered by the communicator (offers())

  int root() const { return call.peer; }
};

/// A request for memory of a communicator.
struct Allocation {
  Call call{};  // Op::kAllocate or Op::kAllocateShared; its `detail` is a hash of the sizes
  at::IntArrayRef sizes{};
  at::TensorOptions options{};

  bool shared() const { return call.op == Op::kAllocateShared; }
  std::size_t bytes() const { return static_cast<std::size_t>(call.elements) * options.dtype().itemsize(); }
};

}  // namespace phalanx
