// SPDX-License-Identifier: Apache-2.0
// The functions of libc10_cuda.so that the plug-in uses, for the fake devices.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <atomic>
#include <cstdint>

#include "framework/testing/fake_cuda/runtime.h"
#include "framework/testing/fake_device/streams.h"

namespace c10::cuda {
namespace {

c10::impl::VirtualGuardImpl fake() { return c10::impl::VirtualGuardImpl(c10::kCUDA); }

c10::Device or_current(DeviceIndex device) { return device < 0 ? fake().getDevice() : c10::Device(c10::kCUDA, device); }

}  // namespace

DeviceIndex device_count() noexcept { return fake().deviceCount(); }

DeviceIndex current_device() { return fake().getDevice().index(); }

cudaError_t GetDevice(DeviceIndex* device) {
  int number = 0;
  const cudaError_t error = cudaGetDevice(&number);
  if (error == cudaSuccess) *device = static_cast<DeviceIndex>(number);
  return error;
}

cudaError_t SetDevice(DeviceIndex device, bool) { return cudaSetDevice(device); }
cudaError_t MaybeSetDevice(DeviceIndex device) { return SetDevice(device); }

DeviceIndex ExchangeDevice(DeviceIndex device) {
  DeviceIndex before = 0;
  C10_CUDA_CHECK(GetDevice(&before));
  if (device != before) C10_CUDA_CHECK(cudaSetDevice(device));
  return before;
}

DeviceIndex MaybeExchangeDevice(DeviceIndex device) { return ExchangeDevice(device); }

void warn_or_error_on_sync() {}

void c10_cuda_check_implementation(int32_t error, const char*, const char*, uint32_t, bool) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  TORCH_CHECK(false, "CUDA error: ", cudaGetErrorString(static_cast<cudaError_t>(error)));
}

bool CUDAStream::query() const {
  const cudaError_t error = cudaStreamQuery(stream());
  if (error != cudaErrorNotReady) C10_CUDA_CHECK(error);
  return error == cudaSuccess;
}

void CUDAStream::synchronize() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream())); }

cudaStream_t CUDAStream::stream() const {
  const int number = phalanx::testing::Streams::global().number_of(device_index(), id());
  return reinterpret_cast<cudaStream_t>(static_cast<std::intptr_t>(number) + 1);
}

CUDAStream getStreamFromPool(const bool high_priority, DeviceIndex device) {
  return CUDAStream(fake().getStreamFromGlobalPool(or_current(device), high_priority));
}
CUDAStream getStreamFromPool(const int priority, DeviceIndex device) { return getStreamFromPool(priority < 0, device); }
CUDAStream getStreamFromExternal(cudaStream_t stream, DeviceIndex device) {
  const auto id = phalanx::testing::stream_id(stream);
  return CUDAStream(c10::Stream(c10::Stream::UNSAFE, c10::Device(c10::kCUDA, device), id));
}
CUDAStream getDefaultCUDAStream(DeviceIndex device) { return CUDAStream(fake().getDefaultStream(or_current(device))); }
CUDAStream getCurrentCUDAStream(DeviceIndex device) { return CUDAStream(fake().getStream(or_current(device))); }
void setCurrentCUDAStream(CUDAStream stream) { fake().exchangeStream(stream.unwrap()); }

namespace CUDACachingAllocator {
std::atomic<CUDAAllocator*> allocator{nullptr};  // the plug-in allocates from LibTorch and from NCCL only
}

}  // namespace c10::cuda
