// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/cuda/CUDAFunctions.h>

namespace phalanx::nccl {

/// Makes a device the current one of this thread while it exists. Unlike c10::cuda::CUDAGuard, it never throws, so it
/// can be used where memory and events are freed, also after a kernel has failed. It opens no context on the device
/// that was current before.
class DeviceScope {
 public:
  explicit DeviceScope(c10::DeviceIndex device) noexcept {
    known_ = c10::cuda::GetDevice(&before_) == cudaSuccess;
    (void)c10::cuda::SetDevice(device);
  }
  ~DeviceScope() {
    if (known_) (void)c10::cuda::MaybeSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  c10::DeviceIndex before_ = 0;
  bool known_ = false;
};

}  // namespace phalanx::nccl
