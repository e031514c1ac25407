// SPDX-License-Identifier: Apache-2.0
#include "framework/backends/nccl/communicator.h"

#include <ATen/ops/from_blob.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "framework/backends/nccl/collectives.h"
#include "framework/backends/nccl/device_scope.h"
#include "framework/base/error.h"

namespace phalanx::nccl {
namespace {

std::vector<at::Tensor> tensors_of(const Operation& operation) {
  std::vector<at::Tensor> tensors;
  for (const auto* tensor : {&operation.output, &operation.input}) {
    if (tensor->defined()) tensors.push_back(*tensor);
  }
  return tensors;
}

std::string sizes_text(std::size_t bytes) { return std::to_string(bytes) + " bytes"; }

// Throws an error with the requested and the available memory.
[[noreturn]] void refuse_memory(const Group& group, std::size_t bytes, ncclResult_t result) {
  std::size_t free = 0, total = 0;
  (void)cudaMemGetInfo(&free, &total);
  throw CommError(CommError::Kind::kSystem, "allocate of " + sizes_text(bytes) + " for " + group.describe() +
                                                " on device cuda:" + std::to_string(group.member().device) +
                                                ", which has " + sizes_text(free) + " free of " + sizes_text(total) +
                                                ": NCCL says: " + ncclGetErrorString(result));
}

}  // namespace

Work NcclCommunicator::launch(Operation operation) {
  auto tensors = tensors_of(operation);
  for (const auto& tensor : tensors) {
    if (tensor.device().index() == group_->member().device) continue;
    throw std::invalid_argument(std::string(to_string(operation.call.op)) + ": a tensor is on " +
                                tensor.device().str() + ", but rank " + std::to_string(rank()) + " of " + name() +
                                " computes on cuda:" + std::to_string(group_->member().device));
  }
  const auto context = [&](ncclComm_t comm, cudaStream_t stream) {
    return LaunchContext{.comm = comm, .stream = stream, .rank = rank(), .size = size()};
  };
  return group_->launch(
      operation.call, std::move(tensors),
      {.calls = [&](ncclComm_t comm, cudaStream_t stream) { execute(context(comm, stream), operation); },
       .after = [&](ncclComm_t comm, cudaStream_t stream) { finish(context(comm, stream), operation); }});
}

Work NcclCommunicator::run(const Call&, std::function<void()>) {
  throw std::logic_error("bodies run in the host's half of a group");
}

// NCCL may deadlock if a communicator is split while it has outstanding operations.
CommunicatorPtr NcclCommunicator::split(int color, int key) {
  group_->finish_operations();
  const std::lock_guard calling(group_->handle()->mutex);
  group_->throw_if_broken();
  const Member& parent = group_->member();
  const c10::cuda::CUDAGuard guard(static_cast<c10::DeviceIndex>(parent.device));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(parent.timeout);
  ncclComm_t comm = NCCL_COMM_NULL;
  ncclResult_t result =
      ncclCommSplit(group_->handle()->comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, key, &comm, &config);
  result = settle(group_->handle()->comm, result, deadline);
  if (result != ncclSuccess) group_->fail("split", result);
  if (color < 0) return nullptr;
  result = settle(comm, ncclInProgress, deadline);
  if (result != ncclSuccess) group_->fail("split", result);
  Member member{
      .group = parent.group + "/" + std::to_string(color), .device = parent.device, .timeout = parent.timeout};
  if (ncclCommUserRank(comm, &member.rank) != ncclSuccess || ncclCommCount(comm, &member.size) != ncclSuccess) {
    group_->fail("split", ncclInternalError);
  }
  return std::make_shared<NcclCommunicator>(std::make_shared<Group>(std::move(member), comm, group_->recorder()));
}

at::Tensor NcclCommunicator::do_allocate(const Allocation& allocation) {
  const auto handle = group_->handle();
  const std::lock_guard calling(handle->mutex);
  group_->throw_if_broken();
  const auto device = static_cast<c10::DeviceIndex>(group_->member().device);
  const c10::cuda::CUDAGuard guard(device);
  const std::size_t bytes = std::max<std::size_t>(allocation.bytes(), 1);
  void* memory = nullptr;
  if (const auto result = ncclMemAlloc(&memory, bytes); result != ncclSuccess) refuse_memory(*group_, bytes, result);
  void* registration = nullptr;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(group_->member().timeout);
  const auto known =
      settle(group_->handle()->comm, ncclCommRegister(group_->handle()->comm, memory, bytes, &registration), deadline);
  if (known != ncclSuccess) {
    (void)ncclMemFree(memory);
    group_->fail("allocate", known);
  }
  const auto let_go = [handle, registration, device](void* memory) {
    const DeviceScope scope(device);
    (void)cudaDeviceSynchronize();  // as in cudaFree: nothing may use the memory after this
    {
      const std::lock_guard lock(handle->mutex);
      if (handle->comm != nullptr) (void)ncclCommDeregister(handle->comm, registration);
    }
    (void)ncclMemFree(memory);
  };
  at::Tensor tensor = at::from_blob(memory, allocation.sizes, let_go, allocation.options.device(c10::kCUDA, device));
  return tensor.zero_();
}

}  // namespace phalanx::nccl
