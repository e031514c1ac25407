// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Returns the bytes that a rank sends in an optimal all-reduce of `bytes`: 2 (P - 1) / P times `bytes`, rounded up.
std::int64_t all_reduce_bytes(std::int64_t bytes, int ranks);

/// The collectives that compressors use, on one group. They block, and they count the bytes that this rank sends. The
/// count assumes an algorithm that moves the minimum; a backend within one host may move less, and small tensors may
/// use algorithms that move more:
///
///   all_reduce   2 (P - 1) / P of the tensor's bytes
///   all_gather   P - 1 times the input's bytes
///   all_to_all   the input's bytes without this rank's own part
///
/// Tensors and errors are as in Communicator. Not thread-safe.
class Wire {
 public:
  explicit Wire(Communicator& group) : group_(group) {}

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }
  std::int64_t bytes() const { return bytes_; }

  void all_reduce(const at::Tensor& tensor, const Reduction& op);
  void all_gather(const at::Tensor& output, const at::Tensor& input, Counts counts = {});
  void all_to_all(const at::Tensor& output, const at::Tensor& input, Counts output_counts, Counts input_counts);

 private:
  Communicator& group_;
  std::int64_t bytes_ = 0;
};

}  // namespace phalanx
