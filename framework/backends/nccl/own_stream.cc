// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/own_stream.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <map>
#include <mutex>
#include <vector>

namespace phalanx::nccl {
namespace {

// The streams that are free, by device. They are used again instead of destroyed, because LibTorch's allocator
// remembers the streams of its memory.
struct FreeStreams {
  std::mutex mutex;
  std::map<c10::DeviceIndex, std::vector<c10::cuda::CUDAStream>> of;
};

FreeStreams& free_streams() {
  static auto& streams = *new FreeStreams;
  return streams;
}

c10::cuda::CUDAStream take_stream(c10::DeviceIndex device) {
  {
    const std::lock_guard lock(free_streams().mutex);
    auto& free = free_streams().of[device];
    if (!free.empty()) {
      const auto stream = free.back();
      free.pop_back();
      return stream;
    }
  }
  const c10::cuda::CUDAGuard guard(device);
  int least = 0, greatest = 0;
  C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t made = nullptr;
  C10_CUDA_CHECK(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, greatest));
  return c10::cuda::getStreamFromExternal(made, device);
}

}  // namespace

OwnStream::OwnStream(c10::DeviceIndex device) : stream_(take_stream(device)) {}

OwnStream::~OwnStream() {
  const std::lock_guard lock(free_streams().mutex);
  free_streams().of[stream_.device_index()].push_back(stream_);
}

}  // namespace phalanx::nccl
