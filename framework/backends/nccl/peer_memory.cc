// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/device/peer_memory.h"

#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstring>

#include "framework/backends/nccl/device_scope.h"
#include "framework/backends/nccl/plugin.h"
#include "framework/base/error.h"

namespace phalanx::nccl {
namespace {

// Throws the error and clears it. LibTorch would attribute a remaining error to its own next kernel.
void require(cudaError_t result, const std::string& what) {
  if (result == cudaSuccess) return;
  (void)cudaGetLastError();
  throw CommError(CommError::Kind::kSystem, what + ": CUDA says: " + cudaGetErrorString(result));
}

// The handle that another rank receives. CUDA's own handle works only in other processes.
struct Handle {
  pid_t process;
  void* address;
  cudaIpcMemHandle_t memory;
};

// Rounds up to whole granules, because CUDA shares all memory of a granule together.
std::size_t in_granules(std::int64_t bytes) {
  constexpr std::size_t kGranule = 2 << 20;
  return (static_cast<std::size_t>(bytes) + kGranule - 1) / kGranule * kGranule;
}

// Uses CUDA's IPC memory handles (cudaIpcGetMemHandle).
class CudaPeerMemory final : public PeerMemory {
 public:
  explicit CudaPeerMemory(c10::DeviceIndex device) : device_(c10::kCUDA, device) {}

  at::Device device() const override { return device_; }

  at::Tensor allocate(std::int64_t bytes) override {
    const c10::cuda::CUDAGuard guard(device_);
    const std::string what = std::to_string(bytes) + " bytes of memory that ranks share, on " + device_.str();
    void* memory = nullptr;
    require(cudaMalloc(&memory, in_granules(bytes)), what);
    require(cudaMemset(memory, 0, static_cast<std::size_t>(bytes)), what);
    require(cudaDeviceSynchronize(), what);  // LibTorch's streams do not wait for the stream of cudaMemset
    return bytes_at(memory, bytes, [](void*) {});
  }

  // If CUDA refuses to free the memory, it is freed when the process ends.
  void free(const at::Tensor& memory) override {
    const DeviceScope scope(device_.index());
    if (cudaFree(memory.data_ptr()) != cudaSuccess) (void)cudaGetLastError();
  }

  std::string handle_of(const at::Tensor& memory) override {
    const c10::cuda::CUDAGuard guard(device_);
    Handle handle{.process = ::getpid(), .address = memory.data_ptr(), .memory = {}};
    require(cudaIpcGetMemHandle(&handle.memory, memory.data_ptr()), "a handle of memory on " + device_.str());
    return {reinterpret_cast<const char*>(&handle), sizeof(handle)};
  }

  at::Tensor open(const std::string& handle, std::int64_t bytes) override {
    const c10::cuda::CUDAGuard guard(device_);
    Handle wanted{};
    if (handle.size() != sizeof(wanted)) {
      throw CommError(CommError::Kind::kSystem, "another rank's memory has no CUDA handle");
    }
    std::memcpy(&wanted, handle.data(), sizeof(wanted));
    if (wanted.process == ::getpid()) return bytes_at(wanted.address, bytes, [](void*) {});
    void* memory = nullptr;
    require(cudaIpcOpenMemHandle(&memory, wanted.memory, cudaIpcMemLazyEnablePeerAccess),
            "opening another rank's memory from " + device_.str());
    const auto close = [device = device_.index()](void* opened) {
      const DeviceScope scope(device);
      (void)cudaIpcCloseMemHandle(opened);
    };
    return bytes_at(memory, bytes, close);
  }

 private:
  // Returns a tensor on this device, wherever the memory lies: kernels reach both.
  template <class Deleter>
  at::Tensor bytes_at(void* memory, std::int64_t bytes, const Deleter& deleter) const {
    return at::for_blob(memory, {bytes})
        .deleter(deleter)
        .options(at::device(device_).dtype(at::kByte))
        .target_device(device_)
        .make_tensor();
  }

  c10::Device device_;
};

}  // namespace

std::shared_ptr<PeerMemory> make_peer_memory(int device) {
  return std::make_shared<CudaPeerMemory>(static_cast<c10::DeviceIndex>(device));
}

}  // namespace phalanx::nccl
