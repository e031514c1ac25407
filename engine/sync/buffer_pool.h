// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "framework/comm/communicator.h"
#include "framework/parallel/flat_parameters.h"

namespace phalanx {

/// Memory for whole buckets that are there for a while: buffers of one size, that of the largest of some buckets, as
/// many as were ever taken at a time. It is allocated when it is taken first, by the group that it is sent in: so all
/// ranks take and give in the same order.
class BufferPool {
 public:
  explicit BufferPool(CommunicatorPtr group) : group_(std::move(group)) {}

  /// From now on buffers are large enough for this bucket. Before the first one is taken.
  void make_room_for(const Bucket& bucket);

  /// [n], with any values. Collective.
  at::Tensor take();
  void give(at::Tensor buffer) { free_.push_back(std::move(buffer)); }

  std::int64_t bytes() const { return bytes_; }  // of all buffers, taken or not

 private:
  CommunicatorPtr group_;
  std::int64_t elements_ = 0;
  at::TensorOptions options_;
  std::vector<at::Tensor> free_;
  std::int64_t bytes_ = 0;
};

}  // namespace phalanx
