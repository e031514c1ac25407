#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"

namespace phalanx {

/// A contiguous run of parameters, in the order in which backward produces their gradients (the last layer first).
struct Bucket {
  at::Tensor values;                   // [n], every parameter is a view of it
  at::Tensor gradients;                // [n], every parameter's grad is a view of it; zeroed by the optimizer
  std::vector<at::Tensor> parameters;  // in the order in which they lie in `values`
};

/// A model's parameters moved into a few buckets, so that communication, optimizer, sharding and checkpoints all work
/// on the same few long tensors and nothing is copied in the loop.
class FlatParameters {
 public:
  /// Moves `parameters` (leaves, of one dtype, on the CPU) into buckets allocated by `memory`; a bucket is closed as
  /// soon as it holds `bucket_bytes`. Collective. Throws std::invalid_argument for a mixture of dtypes.
  FlatParameters(std::vector<at::Tensor> parameters, Communicator& memory, std::int64_t bucket_bytes);

  const std::vector<Bucket>& buckets() const { return buckets_; }

 private:
  std::vector<Bucket> buckets_;
};

}  // namespace phalanx
