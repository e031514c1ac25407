// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <c10/cuda/CUDAException.h>
#include <cuda_runtime_api.h>

namespace phalanx::nccl {

/// A point in the work of a stream. Unlike c10::cuda::CUDAEvent, it can be destroyed in any thread, without changing
/// its device, and also after a kernel has failed. The other functions throw c10::Error; those of one event must not be
/// called at the same time, except query() and block().
class Event {
 public:
  Event() = default;
  ~Event() {
    if (event_ != nullptr) (void)cudaEventDestroy(event_);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Marks the end of the work that has been put on the stream, which must be of the current device.
  void record(cudaStream_t stream) {
    if (event_ == nullptr) C10_CUDA_CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    C10_CUDA_CHECK(cudaEventRecord(event_, stream));
  }

  /// Makes later work of the stream wait for the point.
  void block(cudaStream_t stream) const {
    if (event_ != nullptr) C10_CUDA_CHECK(cudaStreamWaitEvent(stream, event_, 0));
  }

  /// Returns true if the device has reached the point.
  bool query() const {
    if (event_ == nullptr) return true;
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) {
      (void)cudaGetLastError();  // it would remain the error of the next call
      return false;
    }
    C10_CUDA_CHECK(result);
    return true;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace phalanx::nccl
