// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/cuda/CUDAStream.h>

namespace phalanx::nccl {

/// A stream that nobody else has while this object exists. The streams of LibTorch's pool are given to several owners;
/// work that waits there for another rank would hold up work on which that rank waits.
class OwnStream {
 public:
  /// Throws c10::Error.
  explicit OwnStream(c10::DeviceIndex device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  c10::cuda::CUDAStream get() const { return stream_; }

 private:
  c10::cuda::CUDAStream stream_;
};

}  // namespace phalanx::nccl
