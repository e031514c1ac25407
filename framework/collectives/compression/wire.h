// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "framework/comm/communicator.h"

namespace phalanx {

/// Bytes that a rank sends in an all-reduce of `bytes` that moves the minimum: 2 (P - 1) / P of them, rounded up.
std::int64_t all_reduce_bytes(std::int64_t bytes, int ranks);

/// The collectives that compressors are made of, on one group: blocking, and with the bytes counted that this rank puts
/// on the wire. What counts is what an algorithm sends that moves the minimum; a backend of one host may move less, and
/// small tensors may travel by algorithms that move more:
///
///   all_reduce   2 (P - 1) / P of the tensor's bytes
///   all_gather   P - 1 times the input's bytes
///   all_to_all   the input's bytes but for this rank's own part
///
/// Tensors and errors as in Communicator. Used by one thread.
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
