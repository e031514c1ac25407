// SPDX-License-Identifier: Apache-2.0
// The functions that programs look up in the plug-in (framework/base/cuda.h). All other symbols are private.
#include "framework/backends/nccl/plugin.h"

#include <ATen/detail/CUDAHooksInterface.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include "framework/backends/nccl/communicator.h"
#include "framework/backends/nccl/messages.h"
#include "framework/base/cuda.h"
#include "framework/base/log.h"

extern "C" {

void phalanx_cuda_versions(phalanx::CudaVersions* versions) {
  versions->cuda = CUDART_VERSION;
  versions->libtorch_cuda = static_cast<int>(at::detail::getCUDAHooks().versionCUDART());
  versions->nccl = NCCL_VERSION_CODE;
  (void)ncclGetVersion(&versions->running_nccl);
}

void phalanx_cuda_pass_log_to(phalanx::TakeLogLine* take) { phalanx::pass_log_to(take); }

int phalanx_cuda_device_count(const char** why) {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaSuccess) return count;
  *why = cudaGetErrorString(result);
  return 0;
}

void phalanx_nccl_connect(const phalanx::nccl::ConnectRequest& request, phalanx::CommunicatorPtr& made) {
  made = phalanx::nccl::connect(request);
}

void phalanx_nccl_messages(const phalanx::nccl::MessagesRequest& request,
                           std::shared_ptr<phalanx::DeviceMessages>& made) {
  made = std::make_shared<phalanx::nccl::Messages>(request);
}

void phalanx_cuda_make_graph(std::unique_ptr<phalanx::DeviceGraph>& made) { made = phalanx::nccl::make_graph(); }

void phalanx_cuda_peer_memory(int device, std::shared_ptr<phalanx::PeerMemory>& made) {
  made = phalanx::nccl::make_peer_memory(device);
}
}
