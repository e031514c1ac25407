// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/connect.h"

#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstring>
#include <utility>

#include "framework/backends/nccl/communicator.h"
#include "framework/base/error.h"

namespace phalanx::nccl {
namespace {

// Returns a text about two ranks that share a device, or an empty one. NCCL itself reports only "invalid usage".
std::string sharing_ranks(Communicator& host, int device) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  constexpr std::int64_t kBytes = sizeof(properties.uuid);
  const at::Tensor own = bytes_of(&properties.uuid, kBytes);
  const at::Tensor all = at::empty({host.size() * kBytes}, at::kByte);
  host.all_gather(all, own).wait();
  const auto* uuids = static_cast<const std::byte*>(all.data_ptr());
  for (int second = 0; second < host.size(); ++second) {
    for (int first = 0; first < second; ++first) {
      if (std::memcmp(uuids + first * kBytes, uuids + second * kBytes, kBytes) != 0) continue;
      return "ranks " + std::to_string(first) + " and " + std::to_string(second) + " share one device, " +
             properties.name;
    }
  }
  return "";
}

ncclUniqueId agree_on_id(Communicator& host) {
  ncclUniqueId id{};
  if (host.rank() == 0) id = make_id();
  const at::Tensor bytes = bytes_of(&id, sizeof(id));
  host.broadcast(bytes, 0).wait();
  std::memcpy(&id, bytes.data_ptr(), sizeof(id));
  return id;
}

}  // namespace

at::Tensor bytes_of(const void* data, std::size_t size) {
  at::Tensor bytes = at::empty({static_cast<std::int64_t>(size)}, at::kByte);
  std::memcpy(bytes.data_ptr(), data, size);
  return bytes;
}

ncclUniqueId make_id() {
  ncclUniqueId id{};
  const ncclResult_t result = ncclGetUniqueId(&id);
  if (result == ncclSuccess) return id;
  throw CommError(CommError::Kind::kSystem, std::string("NCCL says: ") + ncclGetErrorString(result));
}

ncclComm_t open_communicator(const ncclUniqueId& id, const Member& member) {
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(member.device));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclComm_t comm = NCCL_COMM_NULL;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(member.timeout);
  ncclResult_t result = ncclCommInitRankConfig(&comm, member.size, id, member.rank, &config);
  result = settle(comm, result, deadline);
  if (result == ncclSuccess) return comm;
  if (comm != NCCL_COMM_NULL) (void)ncclCommAbort(comm);
  const bool late = result == ncclInProgress;
  throw CommError(late ? CommError::Kind::kTimeout : CommError::Kind::kSystem,
                  "connecting rank " + std::to_string(member.rank) + " of " + std::to_string(member.size) + " of " +
                      member.group +
                      " by NCCL: " + (late ? "other ranks did not connect" : ncclGetErrorString(result)));
}

CommunicatorPtr connect(const ConnectRequest& request) {
  Communicator& host = *request.host;
  if (std::string sharing = sharing_ranks(host, request.device); !sharing.empty()) {
    if (request.sharing == nullptr) {
      throw ConfigError("backend nccl: " + sharing +
                        ", but NCCL needs one for each rank; start fewer ranks on a host, or use backend: auto");
    }
    *request.sharing = std::move(sharing);
    return nullptr;
  }
  Member member{.group = host.name(),
                .rank = host.rank(),
                .size = host.size(),
                .device = request.device,
                .timeout = request.timeout};
  ncclComm_t const comm = open_communicator(agree_on_id(host), member);
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(request.device));
  return std::make_shared<NcclCommunicator>(std::make_shared<Group>(
      std::move(member), comm, std::shared_ptr<FlightRecorder>(request.host, &host.recorder())));
}

}  // namespace phalanx::nccl
