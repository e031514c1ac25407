// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/partition/flat_parameters.h"

namespace phalanx {

/// A pool of buffers for whole buckets that are needed only for a while. All buffers have the size of the largest
/// bucket, and the pool keeps as many as were ever in use at the same time. A buffer is allocated from the group that
/// it is sent in when it is first needed, so all ranks must take and give buffers in the same order.
class BufferPool {
 public:
  explicit BufferPool(CommunicatorPtr group) : group_(std::move(group)) {}

  /// Makes buffers that are allocated from now on large enough for this bucket. Must be called before the first take().
  void make_room_for(const Bucket& bucket);

  /// Returns a buffer of the size of the largest bucket, with undefined values. Collective.
  at::Tensor take();
  void give(at::Tensor buffer) { free_.push_back(std::move(buffer)); }

  std::int64_t bytes() const { return bytes_; }  // of all buffers, in use or not

 private:
  CommunicatorPtr group_;
  std::int64_t elements_ = 0;
  at::TensorOptions options_;
  std::vector<at::Tensor> free_;
  std::int64_t bytes_ = 0;
};

}  // namespace phalanx
